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

@main struct Examples {
    static func main() {
        let network = ScriptedNetwork(.satisfied(over: .wifi()))
        let model = NetworkModel(monitor: network.monitor)
        print(model.text)
        network.publish(.unsatisfied(Cause(.link, .noCarrier, detail: "interface wlan0 has no carrier")))
        print(model.text)
    }
}
