import EventLoop
import Expectations
import FoundationEssentials
import ReachabilityTestKit
import Testing

@testable import Reachability

@Suite(.timeLimit(.minutes(5))) struct IncidentUpdatesTests {
    private func incident(_ number: Int, _ count: Int = 1, isOver: Bool = false) -> Incident {
        let cause = Cause(.neighbor, .gatewaySilent, detail: "silent")
        let from = Date(timeIntervalSince1970: Double(number))
        return Incident(
            id: "\(number)", scope: .path, subject: .init(.gateway, "192.0.2.\(number)"), cause: cause, targetCount: count,
            from: from, to: isOver ? from.addingTimeInterval(60) : nil)
    }

    private func text(_ incident: Incident?) -> String {
        incident.map { "\($0.state.rawValue) \($0.id) ×\($0.targetCount)" } ?? "end"
    }

    @Test func `a subscriber receives the open incidents, then each change`() async throws {
        let network = ScriptedNetwork()
        network.publish(incident(1))
        network.publish(incident(2))
        network.publish(incident(1, isOver: true))
        let group = try ServerGroup(["api.example.com:443"], monitor: network.monitor)
        var incidents = group.incidents.makeAsyncIterator()
        var others = network.monitor.incidents.makeAsyncIterator()
        expectEqual(text(await incidents.next()), "open 2 ×1")
        expectEqual(text(await others.next()), "open 2 ×1")
        network.publish(incident(3))
        expectEqual(text(await incidents.next()), "open 3 ×1")
        network.publish(incident(2, 7, isOver: true))
        expectEqual(text(await incidents.next()), "over 2 ×7")
        network.cancel()
        expectEqual(text(await incidents.next()), "end")
    }

    @Test func `a slow reader receives the latest state of each incident`() async {
        let network = ScriptedNetwork()
        var incidents = network.monitor.incidents.makeAsyncIterator()
        for count in 1...50 { network.publish(incident(1, count)) }
        network.publish(incident(2))
        network.publish(incident(3))
        network.publish(incident(3, isOver: true))
        var received: [String] = []
        for _ in 0..<3 { received.append(text(await incidents.next())) }
        expectEqual(received, ["open 1 ×50", "open 2 ×1", "over 3 ×1"])
    }

    @Test func `a reader that never reads holds a limited number of incidents that are over`() async {
        let network = ScriptedNetwork()
        var incidents = network.monitor.incidents.makeAsyncIterator()
        for number in 1...3_000 {
            network.publish(incident(number))
            network.publish(incident(number, isOver: true))
        }
        network.publish(incident(0, 9))
        var received: [String] = []
        while received.last != "open 0 ×9", received.count < 3_000 { received.append(text(await incidents.next())) }
        // The incident of time 0 comes first; those that are over follow in the order of their ends.
        expectEqual(received.first, "open 0 ×9")
        var further = 0
        network.cancel()
        while await incidents.next() != nil { further += 1 }
        expectEqual(further, IncidentBatch.finishedLimit)
    }
}
