internal import Glibc

/// The kernel's identifier of one boot of the system, different after each boot (random(4)).
package enum BootIdentifier {
    /// The identifier of the current boot; empty if /proc does not have it.
    package static let current: String = {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(count, 0)).prefix { $0 > 0x20 }, as: UTF8.self)
    }()
}
