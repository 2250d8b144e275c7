import CLinux
import Glibc

/// Reads what sysfs, ethtool and nl80211 know of a device. Nothing here fails: a fact that cannot be had is absent.
///
/// It belongs to the thread that made it, which must be in the namespace to be read.
package struct InterfaceEvidenceReader: ~Copyable {
    private let sysfs: SysfsInterfaces?
    private let wirelessIndexes: () -> Set<UInt32>?
    /// Any socket serves SIOCETHTOOL, and it asks in the namespace that it was opened in; -1 when none could be opened.
    private let socket: Int32

    /// A reader for the namespace of the calling thread.
    ///
    /// - Parameters:
    ///   - usesSysfs: Whether /sys shows this namespace's devices. It shows those of the namespace that mounted it, whichever
    ///     one a thread has entered since.
    ///   - sysfsRoot: Where sysfs is.
    ///   - wirelessIndexes: The interfaces that nl80211 lists, `nil` when it cannot be asked. Called only for a device that could
    ///     be wireless and of which sysfs says nothing.
    package init(usesSysfs: Bool, sysfsRoot: String = "/sys", wirelessIndexes: @escaping () -> Set<UInt32>? = { nil }) {
        sysfs = usesSysfs ? SysfsInterfaces(root: sysfsRoot) : nil
        self.wirelessIndexes = wirelessIndexes
        // Netlink first: a sandbox that has it often forbids other families. Where it is refused, devices are polled by the others.
        let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let netlink = Glibc.socket(AF_NETLINK, kind, NETLINK_ROUTE)
        socket = netlink >= 0 ? netlink : Glibc.socket(AF_INET, kind, 0)
    }

    deinit {
        if socket >= 0 { close(socket) }
    }

    /// Everything that may matter to what `link` is; `nil` where its kind decides alone.
    ///
    /// When sysfs is in use and ``InterfaceEvidence/sources`` lacks it, the device was renamed or given another hardware address
    /// meanwhile; the kernel tells of that in another link message, after which asking again is worth while.
    package func read(_ link: Link) -> InterfaceEvidence? {
        guard InterfaceClassifier.needsEvidence(link) else { return nil }
        var evidence = InterfaceEvidence()
        if let facts = sysfs?.facts(of: link) {
            evidence = InterfaceEvidence(
                deviceType: facts.deviceType, isWireless: facts.isWireless, driver: facts.driver, bus: facts.bus,
                sources: ["sysfs"])
        }
        if let answer = askDriver(of: link) {
            evidence.sources.append("ethtool")
            evidence.driver = answer.driver ?? evidence.driver
            // Before Linux 5.14 no link message names the bus; usb_make_path() begins with it.
            if evidence.bus == nil, answer.position.hasPrefix("usb-") { evidence.bus = "usb" }
        }
        if !evidence.sources.contains("sysfs"), let wireless = wirelessIndexes() {
            evidence.sources.append("nl80211")
            evidence.isWireless = wireless.contains(link.index)
        }
        return evidence
    }

    /// ETHTOOL_GDRVINFO: the driver, and where on its bus the device sits. `nil` when there is no answer; a `nil` driver when the
    /// answer is that there is none (EOPNOTSUPP).
    private func askDriver(of link: Link) -> (driver: String?, position: String)? {
        guard socket >= 0 else { return nil }
        var driver = [CChar](repeating: 0, count: 32)
        var position = [CChar](repeating: 0, count: 32)
        let result = netwatch_ethtool_driver(socket, link.name, &driver, &position)
        guard result == 0 || result == EOPNOTSUPP, nameBelongs(to: link) else { return nil }
        let name = Self.text(driver)
        return (result == 0 && !name.isEmpty ? name : nil, Self.text(position))
    }

    /// Whether the name is still this device's: ethtool asks by name, and a rename may have given it to another.
    private func nameBelongs(to link: Link) -> Bool {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        return if_indextoname(link.index, &name) != nil && Self.text(name) == link.name
    }

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
