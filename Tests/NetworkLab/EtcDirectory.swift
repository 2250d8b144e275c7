import Foundation
import Glibc

/// The /etc of one machine of the lab: a resolver configuration of its own, and this machine's files that programs need to
/// start. It is removed with this object.
public final class EtcDirectory: Sendable {
    private let scratch: ScratchDirectory
    /// The path of the directory.
    public let path: String

    /// Makes the files. Without name servers there is a resolv.conf without a `nameserver` line.
    public init(nameServers: [String] = [], hosts: String = "") throws {
        scratch = try ScratchDirectory()
        path = scratch.file("etc")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for name in ["ld.so.cache", "passwd", "group", "protocols", "services"] where access("/etc/\(name)", R_OK) == 0 {
            try FileManager.default.copyItem(atPath: "/etc/\(name)", toPath: "\(path)/\(name)")
        }
        try write("nsswitch.conf", "hosts: files dns\n")
        try write("hosts", "127.0.0.1 localhost\n\(hosts)")
        try setNameServers(nameServers)
    }

    /// Replaces resolv.conf, as a DHCP client does.
    public func setNameServers(_ addresses: [String]) throws {
        try write("resolv.conf", addresses.map { "nameserver \($0)\n" }.joined())
    }

    private func write(_ name: String, _ text: String) throws {
        let file = "\(path)/\(name)"
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        chmod(file, 0o644)
    }
}
