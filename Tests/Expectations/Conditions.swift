import Foundation
import Glibc
import NetworkLab
public import Testing

extension Trait where Self == ConditionTrait {
    /// A condition for tests that build hosts. If network namespaces are forbidden, the tests are skipped with the reason. With
    /// `CI=true` in the environment they run, and fail at their first host with the same reason.
    public static var requiresNamespaces: Self {
        .disabled(if: !Lab.isAvailable && !Lab.isRequired, "\(Lab.unavailableReason ?? "")")
    }

    /// A condition for tests that mount files over others for one thread. It works like ``requiresNamespaces``.
    public static var requiresMounts: Self {
        .disabled(if: Lab.unavailableMountsReason != nil && !Lab.isRequired, "\(Lab.unavailableMountsReason ?? "")")
    }

    /// A condition for tests that write to /etc/netns. The root of a user namespace, as which an ordinary user runs the suite,
    /// cannot write there. Such tests are always skipped for that user.
    public static var requiresWritableEtc: Self {
        .disabled(if: access("/etc", W_OK) != 0, "/etc/netns cannot be written")
    }

    /// A condition for tests that give files to another user. The root of a user namespace has no other users, so the tests are
    /// always skipped there.
    public static var requiresOtherUsers: Self {
        .disabled(if: !canGiveFilesAway, "files cannot be given to another user")
    }

    private static var canGiveFilesAway: Bool {
        guard let folder = try? ScratchDirectory() else { return false }
        return chown(folder.path, 1, 1) == 0 && chown(folder.path, geteuid(), getegid()) == 0
    }

    /// A condition for tests that open tun or tap devices. It works like ``requiresNamespaces``.
    public static var requiresTun: Self {
        .disabled(if: access("/dev/net/tun", R_OK | W_OK) != 0 && !Lab.isRequired, "/dev/net/tun is not available")
    }

    /// A condition for tests that measure time or memory: with a sanitizer, a program needs many times as much of both.
    public static var skippedUnderSanitizers: Self {
        .disabled(if: Sanitizer.isUsed, "sanitizers take time and memory of their own")
    }

    /// A condition for long tests that make everything in one thread, where no race can be.
    public static var skippedByThreadSanitizer: Self { .disabled(if: Sanitizer.findsRaces, "one thread has no races") }

    /// A condition for tests that last for minutes, or need an idle machine: they run if a variable of the environment is set.
    public static func requires(variable name: String) -> Self {
        .disabled(if: ProcessInfo.processInfo.environment[name] == nil, "it lasts minutes, and \(name) is not set")
    }

    /// A condition for tests that need a file which `scripts/setup test` installs. It works like ``requiresNamespaces``.
    public static func requires(_ file: String) -> Self {
        .disabled(if: access(file, R_OK) != 0 && !Lab.isRequired, "\(file) is missing: scripts/setup test installs it")
    }
}
