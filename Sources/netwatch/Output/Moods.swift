import Console
import Reachability

// Whether what is told is good news.

extension NetworkPath {
    var mood: TextStyle.Mood { status == .satisfied ? .good : .bad }
}

extension ServerState {
    var mood: TextStyle.Mood {
        switch self {
        case .up: .good
        case .down, .unreachable: .bad
        case .unknown, .degraded: .uncertain
        }
    }
}
