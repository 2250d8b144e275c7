import NetlinkBytes

@testable import Reachability

/// The answers to route queries that targets share.
extension Simulation {
    /// Checks that the answer that a target shares with others is the kernel's answer for the target's own destination.
    func judgeSharedRoutes() throws {
        for id in machine.fleet.ids {
            for query in machine.fleet[id]?.queries ?? [] {
                guard let shared = machine.fleet.book.lastAnswer(to: query) else { continue }
                let own = RouteAnswer(NetlinkDecoder.decode(kernel.reply(to: query)), to: query)
                guard shared == own else { throw Violation(description: "\(query): shared \(shared), own \(own as Any)") }
            }
        }
    }
}
