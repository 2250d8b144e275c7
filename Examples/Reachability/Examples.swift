import Foundation
import Reachability

@main struct Examples {
    static func main() async throws {
        switch CommandLine.arguments.dropFirst().first {
        case "path": try await watchPath()
        case "causes": try await watchCauses()
        case "server": try await watchServer()
        case "group": try await watchGroup()
        case "callbacks": try await watchWithCallbacks()
        default: print("usage: ReachabilityExamples path|causes|server|group|callbacks")
        }
    }

    static func watchPath() async throws {
        let monitor = try PathMonitor()  // no daemon, no privilege
        for await update in monitor.updates {  // the first element is the present, isInitial == true
            print(update.path.status, update.path.interface?.type as Any, update.reasons)
        }
    }

    static func watchCauses() async throws {
        let monitor = try PathMonitor()
        for await update in monitor.updates {
            print(update.path.status, update.path.cause as Any)
        }
    }

    static func watchServer() async throws {
        let monitor = try PathMonitor()
        let server = try ServerMonitor("api.example.com:443", on: monitor)
        for await update in server.updates {
            switch update.status {
            case .up(let route), .degraded(let route, _): print("up via", route.interface?.type as Any, route.roundTrip)
            case .down(let cause), .unreachable(let cause): print(cause)
            default: break  // .unknown
            }
        }
    }

    static func watchGroup() async throws {
        let monitor = try PathMonitor()
        let group = try ServerGroup(["api.example.com:443", "db.example.com:5432"], on: monitor)
        for await update in group.updates { print(update.endpoint, update.status) }  // one stream for many servers
    }

    static func watchWithCallbacks() async throws {
        let monitor = try PathMonitor()
        let observer = NotificationCenter.default.addObserver(of: monitor, for: .pathDidChange) { message in
            print("posted", message.update.path.status)
        }
        let token = monitor.onChange { update in print(update.path.status) }  // callback style; ends with the token
        try await Task.sleep(for: .seconds(3600))
        withExtendedLifetime((token, observer)) {}
    }
}
