import Glibc

/// The network devices in sysfs (Documentation/ABI/testing/sysfs-class-net).
struct SysfsInterfaces {
    /// The facts about one device in sysfs.
    struct Facts: Hashable {
        var deviceType: String?
        var isWireless = false
        var driver: String?
        var bus: String?
    }

    /// The mount point of sysfs.
    let root: String

    /// Returns the facts about `link`; `nil` unless the device of that name is the same device.
    ///
    /// Another device may have received the name since the link message. A sysfs of another namespace may show a device with the
    /// same name and even the same index. Therefore the directory is opened once, and the index, hardware type and hardware
    /// address in it must match the link.
    func facts(of link: Link) -> Facts? {
        guard !link.name.isEmpty, !link.name.contains("/"), link.name != ".", link.name != ".." else { return nil }
        let directory = open("\(root)/class/net/\(link.name)", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return nil }
        defer { close(directory) }
        guard line("ifindex", in: directory) == String(link.index), line("type", in: directory) == String(link.hardwareType),
            line("address", in: directory) == Self.text(link.hardwareAddress)
        else { return nil }

        var facts = Facts()
        let event = text("uevent", in: directory) ?? ""
        for line in event.split(separator: "\n") where line.hasPrefix("DEVTYPE=") {
            facts.deviceType = String(line.dropFirst("DEVTYPE=".count))
        }
        facts.isWireless = exists("phy80211", in: directory) || exists("wireless", in: directory)
        facts.driver = targetName("device/driver", in: directory)
        facts.bus = targetName("device/subsystem", in: directory)
        return facts
    }

    private static func text(_ hardwareAddress: [UInt8]) -> String {
        hardwareAddress.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: ":")
    }

    /// Reads an attribute, which is at most one page (sysfs.rst).
    private func text(_ name: String, in directory: Int32) -> String? {
        let file = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(file, &bytes, bytes.count)
        return count >= 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }

    private func line(_ name: String, in directory: Int32) -> String? {
        text(name, in: directory).map { String($0.prefix { $0 != "\n" }) }
    }

    private func exists(_ name: String, in directory: Int32) -> Bool { faccessat(directory, name, F_OK, 0) == 0 }

    /// Returns the last component of a symbolic link's target.
    private func targetName(_ name: String, in directory: Int32) -> String? {
        var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlinkat(directory, name, &target, target.count)
        guard count > 0 else { return nil }
        return String(decoding: target.prefix(count), as: UTF8.self).split(separator: "/").last.map(String.init)
    }
}
