import Expectations
import Foundation
import Testing

@testable import Reachability

@Suite struct InterfaceEvidenceReaderTests {
    private let sysfs: TemporaryDirectory
    private let address: [UInt8] = [0x02, 0, 0, 0, 0, 0x0a]

    init() throws { sysfs = try TemporaryDirectory() }

    /// Writes a device as sysfs shows it.
    private func show(
        _ name: String, index: UInt32 = 7, type: UInt16 = 1, address: String = "02:00:00:00:00:0a", uevent: String = "",
        driver: String? = nil, bus: String? = nil
    ) throws {
        let directory = "class/net/\(name)"
        try sysfs.makeDirectory("\(directory)/device")
        try sysfs.write("\(index)\n", to: "\(directory)/ifindex")
        try sysfs.write("\(type)\n", to: "\(directory)/type")
        try sysfs.write("\(address)\n", to: "\(directory)/address")
        try sysfs.write("\(uevent)INTERFACE=\(name)\nIFINDEX=\(index)\n", to: "\(directory)/uevent")
        if let driver { try sysfs.link("\(directory)/device/driver", to: "../../../bus/drivers/\(driver)") }
        if let bus { try sysfs.link("\(directory)/device/subsystem", to: "../../../bus/\(bus)") }
    }

    private func facts(_ link: Link) -> SysfsInterfaces.Facts? { SysfsInterfaces(root: sysfs.path).facts(of: link) }

    /// A link of index 7. The machine has no interface of this name, so that ethtool finds nothing.
    private func link(_ name: String = "nosuchdev0") -> Link { Link(index: 7, name: name, hardwareAddress: address) }

    private func read(_ link: Link, usesSysfs: Bool = true, wireless: Set<UInt32>?) -> InterfaceEvidence? {
        InterfaceEvidenceReader(usesSysfs: usesSysfs, sysfsRoot: sysfs.path, wirelessIndexes: { wireless }).read(link)
    }

    @Test func `evidence has DEVTYPE, driver and bus from sysfs`() throws {
        try show("nosuchdev0", uevent: "DEVTYPE=wwan\n", driver: "qmi_wwan", bus: "usb")
        expectEqual(
            read(link(), wireless: nil),
            InterfaceEvidence(deviceType: "wwan", driver: "qmi_wwan", bus: "usb", sources: ["sysfs"]))
    }

    @Test(arguments: ["phy80211", "wireless"])
    func `a wireless device is recognized by sysfs without nl80211`(entry: String) throws {
        try show("nosuchdev0")
        try sysfs.makeDirectory("class/net/nosuchdev0/\(entry)")
        expectEqual(read(link(), wireless: nil), InterfaceEvidence(isWireless: true, sources: ["sysfs"]))
        expectEqual(read(link(), wireless: []), InterfaceEvidence(isWireless: true, sources: ["sysfs"]))
    }

    @Test func `sysfs of another device under the same name is not used`() throws {
        try show("index", index: 8, bus: "pci")
        try show("type", type: 772, bus: "pci")
        try show("address", address: "02:00:00:00:00:0b", bus: "pci")
        try show("same", bus: "pci")
        for name in ["index", "type", "address", "absent"] { expectNil(facts(link(name))) }
        expectEqual(facts(link("same")), SysfsInterfaces.Facts(bus: "pci"))
    }

    @Test func `a device without a hardware address is read from sysfs`() throws {
        try show("bare", type: 65534, address: "")
        expectEqual(facts(Link(index: 7, name: "bare", hardwareType: 65534)), SysfsInterfaces.Facts())
    }

    @Test(arguments: ["", ".", "..", "../net/same", "/"])
    func `a name that leads out of class/net opens no file`(name: String) throws {
        try show("same")
        expectNil(facts(link(name)))
    }

    @Test func `if sysfs belongs to another namespace it is not read, and nl80211 is asked`() throws {
        try show("nosuchdev0", uevent: "DEVTYPE=wwan\n", driver: "qmi_wwan", bus: "usb")
        expectEqual(read(link(), usesSysfs: false, wireless: [3]), InterfaceEvidence(sources: ["nl80211"]))
        expectEqual(read(link(), usesSysfs: false, wireless: [3, 7]), InterfaceEvidence(isWireless: true, sources: ["nl80211"]))
        expectEqual(read(link(), usesSysfs: false, wireless: nil), InterfaceEvidence())
    }

    @Test func `no evidence is read for a veth interface`() throws {
        var asked = 0
        let reader = InterfaceEvidenceReader(usesSysfs: true, sysfsRoot: sysfs.path) {
            asked += 1
            return []
        }
        let evidence = reader.read(Link(index: 7, name: "nosuchdev0", kind: "veth"))
        expectNil(evidence)
        expectEqual(asked, 0)
    }

    /// Each device of this machine that sysfs shows is read. The test passes if the machine has none.
    @Test func `evidence of this machine's interfaces has its sources, its bus, and a type that is not virtual for a device`() {
        let root = "/sys/class/net"
        let reader = InterfaceEvidenceReader(usesSysfs: true)
        for name in (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? [] {
            func attribute(_ attribute: String) -> String? {
                let text = try? String(contentsOfFile: "\(root)/\(name)/\(attribute)", encoding: .utf8)
                return text?.trimmingCharacters(in: .whitespacesAndNewlines)
            }
            guard let index = attribute("ifindex").flatMap({ UInt32($0) }), let type = attribute("type").flatMap({ UInt16($0) }),
                let address = attribute("address"), if_nametoindex(name) == index
            else { continue }
            let link = Link(
                index: index, name: name, flags: type == 772 ? .loopback : [], hardwareType: type,
                hardwareAddress: address.split(separator: ":").compactMap { UInt8($0, radix: 16) })
            let answer = reader.read(link)
            expectEqual((answer == nil), (type == 772))
            guard let evidence = answer else { continue }
            expectEqual(evidence.sources, ["sysfs", "ethtool"])
            let hasDevice = FileManager.default.fileExists(atPath: "\(root)/\(name)/device")
            expectEqual((evidence.bus != nil), hasDevice)
            let result = InterfaceClassifier.classify(link, evidence: evidence, among: [index: link]) { _ in nil }
            if hasDevice { #expect(!result.isVirtual || evidence.bus == "netdevsim", "\(name): \(result)") }
        }
    }
}
