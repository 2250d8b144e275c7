import Console
import Reachability

// The assessments of paths and servers, for symbols and colors.

extension NetworkPath {
    var assessment: TextStyle.Assessment { status == .satisfied ? .good : .bad }
}

extension Incident {
    var assessment: TextStyle.Assessment { state == .over ? .good : .bad }
}

extension ServerState {
    var assessment: TextStyle.Assessment {
        switch self {
        case .up: .good
        case .down, .unreachable: .bad
        case .unknown, .degraded: .uncertain
        }
    }
}
