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

    /// For tests that open tun or tap devices, likewise.
    public static var requiresTun: Self {
        .disabled(if: access("/dev/net/tun", R_OK | W_OK) != 0 && !Lab.isRequired, "/dev/net/tun is not to be had")
    }
}
