import CLinux
import Foundation
import Glibc

extension Lab {
    /// The reason why this process cannot build a lab, or nil if it can.
    public static let unavailableReason: String? = {
        do {
            _ = try locate("ip")
            let host = try LabHost()
            try host.ip("link set lo up")
            return nil
        } catch {
            return "network namespaces are not available: \(error)"
        }
    }()

    /// The reason why a thread of this process cannot have mounts of its own, or nil if it can.
    public static let unavailableMountsReason: String? = {
        do {
            try onThread {
                guard unshare(netwatch_CLONE_FS | netwatch_CLONE_NEWNS) == 0 else { throw LabError("unshare", errno: errno) }
                guard mount("", "/", "none", UInt(MS_SLAVE | MS_REC), nil) == 0 else { throw LabError("mount", errno: errno) }
            }
            return nil
        } catch {
            return "mount namespaces are not available: \(error)"
        }
    }()

    /// True if hosts can be made here.
    public static var isAvailable: Bool { unavailableReason == nil }

    /// True in continuous integration, where a test that cannot run is a failure and not a skip.
    public static var isRequired: Bool { ProcessInfo.processInfo.environment["CI"] == "true" }
}

/// The sanitizer under which the tests run, which makes them many times slower.
public enum Sanitizer {
    /// True if the tests run under a sanitizer.
    public static let isUsed = ProcessInfo.processInfo.environment["SUITE_SANITIZER"] != nil
    /// True if it is ThreadSanitizer.
    public static let findsRaces = ProcessInfo.processInfo.environment["SUITE_SANITIZER"] == "thread"
}
