import Console
import FoundationEssentials
import Reachability

/// The environment variables of a hook. Every variable is always set; it is empty if its value is unknown.
enum HookEnvironment {
    /// Returns whether hooks run for this record: they run for changes of the path and of targets, not for the initial state. An
    /// incident only combines such changes.
    static func isChange(_ record: Record) -> Bool {
        switch record.event {
        case .path(let update): !update.isInitial
        case .server(_, let update): !update.isInitial
        case .probe, .incident, .resync, .gap, .ended: false
        }
    }

    static func variables(for record: Record) -> [(name: String, value: String)] {
        var (status, target, address) = ("", "", "")
        var (interface, cause): (NetworkInterface?, Cause?)
        switch record.event {
        case .path(let update):
            status = update.path.status.rawValue
            interface = update.path.interface
            cause = update.path.cause
        case .server(_, let update):
            status = update.statusName.rawValue
            target = update.endpoint.text
            address = update.address?.description ?? ""
            interface = update.interface
            cause = update.cause
        case .probe, .incident, .resync, .gap, .ended: break
        }
        return [
            ("NETWATCH_TYPE", record.kind.rawValue),
            ("NETWATCH_STATUS", status),
            ("NETWATCH_TARGET", target),
            ("NETWATCH_ADDRESS", address),
            ("NETWATCH_INTERFACE", interface?.name ?? ""),
            ("NETWATCH_INTERFACE_TYPE", interface?.type.rawValue ?? ""),
            ("NETWATCH_CAUSE", cause?.name ?? ""),
            ("NETWATCH_DETAIL", cause?.detail ?? ""),
            ("NETWATCH_SEQ", "\(record.seq)"),
            ("NETWATCH_TS", Timestamp.text(record.event.moment)),
            ("NETWATCH_SUPERSEDED", "\(record.superseded)"),
        ]
    }
}
