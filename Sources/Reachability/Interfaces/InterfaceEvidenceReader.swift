import CLinux
import Glibc

/// Reads facts about a device from sysfs, ethtool and nl80211. Reading never fails: a fact that cannot be read is absent.
///
/// Only the thread that created the reader may use it. That thread must be in the network namespace to be read.
package struct InterfaceEvidenceReader: ~Copyable {
    private let sysfs: SysfsInterfaces?
    private let wirelessIndexes: () -> Set<UInt32>?
    /// A socket for SIOCETHTOOL, which any socket accepts. The kernel answers for the namespace in which the socket was opened.
    /// -1 if no socket could be opened.
    private let socket: Int32

    /// Creates a reader for the network namespace of the calling thread.
    ///
    /// - Parameters:
    ///   - usesSysfs: Whether /sys shows this namespace's devices. sysfs shows the devices of the namespace that mounted it, even
    ///     if the thread has entered another namespace since.
    ///   - sysfsRoot: The mount point of sysfs.
    ///   - wirelessIndexes: Returns the interfaces that nl80211 lists, or `nil` if nl80211 does not answer. Called only for a
    ///     device that may be wireless and that sysfs does not describe.
    package init(usesSysfs: Bool, sysfsRoot: String = "/sys", wirelessIndexes: @escaping () -> Set<UInt32>? = { nil }) {
        sysfs = usesSysfs ? SysfsInterfaces(root: sysfsRoot) : nil
        self.wirelessIndexes = wirelessIndexes
        // Netlink first: a sandbox that permits netlink often forbids other families. If netlink is refused, the poller uses the
        // others.
        let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let netlink = Glibc.socket(AF_NETLINK, kind, NETLINK_ROUTE)
        socket = netlink >= 0 ? netlink : Glibc.socket(AF_INET, kind, 0)
    }

    deinit {
        if socket >= 0 { close(socket) }
    }

    /// Reads all facts that can change the classification of `link`; `nil` if the link's kind decides alone.
    ///
    /// If sysfs is in use and ``InterfaceEvidence/sources`` lacks it, the device was renamed or received another hardware address
    /// during the read. The kernel then sends another link message, after which the caller reads again.
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
            // Before Linux 5.14 no link message names the bus. The position of a USB device begins with `usb-` (usb_make_path()).
            if evidence.bus == nil, answer.position.hasPrefix("usb-") { evidence.bus = "usb" }
        }
        if !evidence.sources.contains("sysfs"), let wireless = wirelessIndexes() {
            evidence.sources.append("nl80211")
            evidence.isWireless = wireless.contains(link.index)
        }
        return evidence
    }

    /// Asks ethtool (ETHTOOL_GDRVINFO) for the driver and the device's position on its bus. Returns `nil` if there is no answer,
    /// and a `nil` driver if the device has none (EOPNOTSUPP).
    private func askDriver(of link: Link) -> (driver: String?, position: String)? {
        guard socket >= 0 else { return nil }
        var driver = [CChar](repeating: 0, count: 32)
        var position = [CChar](repeating: 0, count: 32)
        let result = netwatch_ethtool_driver(socket, link.name, &driver, &position)
        guard result == 0 || result == EOPNOTSUPP, nameBelongs(to: link) else { return nil }
        let name = Self.text(driver)
        return (result == 0 && !name.isEmpty ? name : nil, Self.text(position))
    }

    /// Whether the name still belongs to this device. ethtool looks a device up by name, and a rename may have given the name to
    /// another device.
    private func nameBelongs(to link: Link) -> Bool {
        var name = [CChar](repeating: 0, count: Int(IF_NAMESIZE))
        return if_indextoname(link.index, &name) != nil && Self.text(name) == link.name
    }

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
