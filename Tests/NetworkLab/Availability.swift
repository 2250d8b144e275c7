import CLinux
import Foundation
import Glibc
public import Testing

extension Lab {
    /// Why this process cannot build a lab; nil when it can.
    public static let unavailableReason: String? = {
        do {
            _ = try locate("ip")
            let host = try LabHost()
            try host.ip("link set lo up")
            return nil
        } catch {
            return "network namespaces are not to be had: \(error)"
        }
    }()

    /// Why a thread of this process cannot have mounts of its own; nil when it can.
    static let unavailableMountsReason: String? = {
        do {
            try onThread {
                guard unshare(netwatch_CLONE_FS | netwatch_CLONE_NEWNS) == 0 else { throw LabError("unshare", errno: errno) }
                guard mount("", "/", "none", UInt(MS_SLAVE | MS_REC), nil) == 0 else { throw LabError("mount", errno: errno) }
            }
            return nil
        } catch {
            return "mount namespaces are not to be had: \(error)"
        }
    }()

    /// Whether hosts can be made here.
    public static var isAvailable: Bool { unavailableReason == nil }

    /// In continuous integration a test that cannot run is a failure, not a skip.
    static var isRequired: Bool { ProcessInfo.processInfo.environment["CI"] == "true" }
}

extension Trait where Self == ConditionTrait {
    /// For tests that build hosts: where network namespaces are forbidden they are skipped with the reason. With `CI=true` in the
    /// environment they run, and fail with the same reason at their first host.
    public static var requiresNamespaces: Self {
        .disabled(if: !Lab.isAvailable && !Lab.isRequired, "\(Lab.unavailableReason ?? "")")
    }

    /// For tests that put files in the place of others for one thread, likewise.
    public static var requiresMounts: Self {
        .disabled(if: Lab.unavailableMountsReason != nil && !Lab.isRequired, "\(Lab.unavailableMountsReason ?? "")")
    }

    /// For tests that write to /etc/netns. The root of a user namespace, as which an ordinary user runs the suite, may not: they are
    /// skipped for him everywhere.
    public static var requiresWritableEtc: Self {
        .disabled(if: access("/etc", W_OK) != 0, "/etc/netns cannot be written")
    }

    /// For tests that give files to another user. The root of a user namespace has no other users: they are skipped for him everywhere.
    public static var requiresOtherUsers: Self {
        .disabled(if: !canGiveFilesAway, "files cannot be given to another user")
    }

    private static var canGiveFilesAway: Bool {
        guard let folder = try? ScratchDirectory() else { return false }
        return chown(folder.path, 1, 1) == 0 && chown(folder.path, geteuid(), getegid()) == 0
    }

    /// For tests that open tun or tap devices, likewise.
    public static var requiresTun: Self {
        .disabled(if: access("/dev/net/tun", R_OK | W_OK) != 0 && !Lab.isRequired, "/dev/net/tun is not to be had")
    }

    /// For tests of times and of memory, which sanitizers multiply.
    public static var skippedUnderSanitizers: Self {
        .disabled(if: Sanitizer.isUsed, "sanitizers take time and memory of their own")
    }

    /// For tests of programs that do not see /proc: AddressSanitizer's runtime reads it, and warns on standard error.
    public static var skippedUnderAddressSanitizer: Self {
        .disabled(
            if: ProcessInfo.processInfo.environment["SUITE_SANITIZER"] == "address", "AddressSanitizer's own runtime needs /proc")
    }

    /// For tests that need what `scripts/setup test` installs, named by a file of it, likewise.
    public static func requires(_ file: String) -> Self {
        .disabled(if: access(file, R_OK) != 0 && !Lab.isRequired, "\(file) is missing: scripts/setup test installs it")
    }
}

/// Whether the tests run under a sanitizer, which makes them many times slower.
public enum Sanitizer {
    /// Whether there is one.
    public static let isUsed = ProcessInfo.processInfo.environment["SUITE_SANITIZER"] != nil
}
