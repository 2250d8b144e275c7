import Dispatch
import Reachability
import ReachabilityTestKit

/// The model of a view that shows the state of the network.
struct NetworkModel {
    let monitor: PathMonitor

    var text: String {
        guard let path = monitor.current?.path else { return "unknown" }
        return path.cause.map { "unsatisfied, \($0.code.rawValue)" } ?? "satisfied, \(path.interface?.type.rawValue ?? "")"
    }
}

/// The examples of ReachabilityTestKit's documentation.
struct ReachabilityTestKitExamples {
    static func main(_ arguments: [String]) async throws {
        showPath()
        showCallback()
        try await showServer()
    }

    static func showPath() {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let model = NetworkModel(monitor: network.monitor)
        print(model.text)
        network.publish(.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")))
        print(model.text)
    }

    static func showCallback() {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let queue = DispatchQueue(label: "callbacks")
        let token = network.monitor.onChange(on: queue) { update in print(update.path.interface?.name ?? "none") }
        queue.sync {}
        network.publish(.satisfied(over: .wired()))
        queue.sync {}
        token.cancel()
    }

    static func showServer() async throws {
        let network = ScriptedNetwork(.satisfied(over: .wired()))
        let server = try ServerMonitor("api.example.com:443", monitor: network.monitor)
        try network.publish(.down(Cause(.tcp, .refused, detail: "the server refuses connections")), of: "api.example.com:443")
        print(server.current?.status.cause?.code.rawValue ?? "up")
        try network.publish(.up(), of: "api.example.com:443")  // at 192.0.2.1, over a wired interface, after 10 ms
    }
}
