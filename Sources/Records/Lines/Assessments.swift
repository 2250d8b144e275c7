package import Console
package import Reachability

// The assessments of paths and servers, for symbols and colors.

extension NetworkPath {
    package var assessment: TextStyle.Assessment { status == .satisfied ? .good : .bad }
}

extension Incident {
    package var assessment: TextStyle.Assessment { isOpen ? .bad : state == .merged ? .uncertain : .good }
}

extension StatusName {
    package var assessment: TextStyle.Assessment {
        switch self {
        case .up: .good
        case .down, .unreachable: .bad
        case .unknown, .degraded: .uncertain
        }
    }
}
