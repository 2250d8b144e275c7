import Foundation
import Reachability

/// The examples of Reachability's documentation.
struct ReachabilityExamples {
    static func main(_ arguments: [String]) async throws {
        switch arguments.first {
        case "path": try await watchPath()
        case "causes": try await watchCauses()
        case "present": try await printPresentPath()
        case "wifi": try await watchWiFi()
        case "server": try await watchServer()
        case "group": try await watchGroup()
        case "canary": try await watchCanary()
        case "callbacks": try await watchWithCallbacks()
        default: print("usage: Examples Reachability path|causes|present|wifi|server|group|canary|callbacks")
        }
    }

    static func watchPath() async throws {
        let monitor = try PathMonitor()
        for await update in monitor.updates {  // the first update is the current path
            print(update.path.status, update.path.cause?.detail ?? update.path.interface?.type.rawValue ?? "")
        }
    }

    static func watchCauses() async throws {
        let monitor = try PathMonitor()
        for await update in monitor.updates {
            print(update.path.status, update.path.cause as Any)
        }
    }

    static func printPresentPath() async throws {
        let monitor = try PathMonitor()
        if let path = await monitor.firstPath() {
            print(path.status, "IPv4:", path.supportsIPv4, "IPv6:", path.supportsIPv6, "DNS:", path.supportsDNS)
            for interface in path.interfaces { print(interface.name, interface.type, interface.level, interface.addresses) }
        }
    }

    static func watchWiFi() async throws {
        let monitor = try PathMonitor(requiredInterfaceType: .wifi)
        let token = monitor.onChange(on: .main) { update in
            print(update.path.status == .satisfied, update.path.isExpensive)
        }
        try await Task.sleep(for: .seconds(3600))
        token.cancel()
    }

    static func watchServer() async throws {
        let monitor = try PathMonitor()
        let server = try ServerMonitor("api.example.com:443", monitor: monitor)
        for await update in server.updates {
            switch update.status {
            case .up(let route), .degraded(let route, _): print("up via", route.interface?.name ?? "", route.roundTrip)
            case .down(let cause), .unreachable(let cause): print(cause)
            default: break  // .unknown
            }
        }
    }

    static func watchGroup() async throws {
        let monitor = try PathMonitor()
        let group = try ServerGroup(["api.example.com:443", "db.example.com:5432"], monitor: monitor)
        for await update in group.updates { print(update.endpoint, update.status) }  // one stream for many servers
    }

    static func watchCanary() async throws {
        let monitor = try PathMonitor()
        var settings = ProbeSettings()
        settings.http.isCanary = true  // the answer must be 204
        let canary = try ServerMonitor("http://canary.example.com/generate_204", settings: settings, monitor: monitor)
        for await update in canary.updates {
            switch update.status {
            case .up, .degraded: print("up")
            case .down(let cause) where cause.code == .captivePortal: print("down: a captive portal answers")
            case .down(let cause), .unreachable(let cause): print(cause)
            default: break  // .unknown
            }
        }
    }

    static func watchWithCallbacks() async throws {
        let monitor = try PathMonitor()
        let observer = NotificationCenter.default.addObserver(of: monitor, for: .pathDidChange) { message in
            print("posted", message.update.path.status)
        }
        let token = monitor.onChange { update in print(update.path.status) }  // until the token is released
        try await Task.sleep(for: .seconds(3600))
        withExtendedLifetime((token, observer)) {}
    }
}
