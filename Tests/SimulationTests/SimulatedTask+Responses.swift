import Foundation
import HTTPTypes
import Pacing
import Reachability

@testable import HTTPSession

/// Delivers the simulated server's responses to the task's machine.
extension SimulatedTask {
    func take(_ delivery: SimulatedTransport.Delivery, _ world: inout TaskSimulation) throws {
        if let head = delivery.head { try judgePending(head, &world) }
        if delivery.isRefused {
            machine.receiverBecameFull()
        } else if delivery.count > 0 {
            try take(delivery.count, &world)
        }
    }

    func takeHead(_ world: inout TaskSimulation) throws {
        guard let answer = world.answer(to: transfer?.lines ?? []) else { throw violation("no answer") }
        guard !world.chance(20) else {
            transfer?.unjudged = answer
            transfer?.transport.receiveChallenge(answer.head)
            return
        }
        try judge(answer, &world)
    }

    func judgePending(_ head: ResponseHead, _ world: inout TaskSimulation) throws {
        guard let answer = transfer?.unjudged, answer.head == head else { throw violation("a head of another attempt") }
        transfer?.unjudged = nil
        try judge(answer, &world)
    }

    func judge(_ answer: SimulatedServer.Answer, _ world: inout TaskSimulation) throws {
        transfer?.answer = answer
        let intake = machine.receivedHead(answer.head, at: Date(timeIntervalSince1970: 1e9), now: world.now)
        retriesBeforeOutage = nil
        try perform(&world)
        if case .abort(let error) = intake { try end(TransferFailure(error), &world) }
    }

    func take(_ count: Int64, _ world: inout TaskSimulation) throws {
        // The head may have ended the attempt.
        guard let present = transfer else { return }
        guard let answer = present.answer else { throw violation("a body without its head") }
        transfer?.delivered += count
        switch machine.receivedBytes(Int(count), now: world.now, arrived: { nil }) {
        case .undecided:
            transfer?.delivered -= count
            machine.receiverBecameFull()
            try transfer?.transport.refuse(count)
        case .refused(let error): try end(TransferFailure(error), &world)
        case .memory:
            let intake = [UInt8](repeating: 0, count: Int(count)).withUnsafeBytes { machine.buffer($0) }
            if case .abort(let error) = intake { try end(TransferFailure(error), &world) }
        case .sink:
            if let version, answer.version != version || answer.bytes.lowerBound + present.delivered != received {
                throw violation("spliced: \(answer.bytes) of version \(answer.version) at \(received) of version \(version)")
            }
            machine.sinkAccepted(Int(count))
            try perform(&world)
        }
    }

    func finishAnswer(_ world: inout TaskSimulation) throws {
        if let head = transfer?.transport.takePendingHead() {
            try judgePending(head, &world)
            guard transfer != nil else { return }
        }
        if transfer?.answer == nil { throw violation("the end of a response without its head") }
        try end(nil, &world)
    }

    func fail(_ code: HTTPSessionError.Code, isDead: Bool = false, _ world: inout TaskSimulation) throws {
        try end(TransferFailure(HTTPSessionError(code, "simulated")), isDead: isDead, &world)
    }

    func end(_ failure: TransferFailure?, isDead: Bool = false, _ world: inout TaskSimulation) throws {
        transfer = nil
        var facts = TransferFacts()
        facts.wasResent = isDead
        machine.transferFinished(facts, failure, now: world.now)
        try perform(&world)
    }
}
