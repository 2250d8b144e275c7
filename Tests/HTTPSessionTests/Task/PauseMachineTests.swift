import Expectations
import Pacing
import Testing

@testable import HTTPSession

@Suite struct PauseMachineTests {
    /// A transfer whose body has begun.
    private func receiving() -> PauseMachine {
        var machine = PauseMachine()
        expectEqual(machine.receivedBytes(), .accepted(nil))
        return machine
    }

    @Test func `a suspension before the body lets the head through`() {
        var machine = PauseMachine()
        machine.setSuspended(true)
        expectEqual(machine.applyChange(), .sending)
        expectEqual(machine.receivedBytes(), .refused)
        #expect(machine.applied == .both && machine.isApplied && machine.hasRefusedBytes)
        machine.setSuspended(false)
        expectEqual(machine.applyChange(), [])
        expectEqual(machine.receivedBytes(), .accepted(nil))
    }

    @Test func `a suspension pauses both directions until the resumption`() {
        var machine = receiving()
        expectNil(machine.applyChange())
        machine.setSuspended(true)
        expectEqual(machine.applyChange(), .both)
        expectNil(machine.applyChange())
        machine.setSuspended(false)
        expectEqual(machine.applyChange(), [])
        expectNil(machine.applyChange())
    }

    @Test func `a suspension and a resumption in one turn change nothing`() {
        var machine = PauseMachine()
        machine.setSuspended(true)
        machine.setSuspended(false)
        #expect(machine.isApplied && machine.applyChange() == nil)
    }

    @Test func `a full receiver stays paused through a suspension`() {
        var machine = receiving()
        machine.receiverBecameFull()
        #expect(machine.isApplied && machine.hasRefusedBytes)
        machine.setSuspended(true)
        expectEqual(machine.applyChange(), .both)
        machine.setSuspended(false)
        expectEqual(machine.applyChange(), .receiving)
        machine.receiverReady()
        expectEqual(machine.applyChange(), [])
        #expect(!machine.hasRefusedBytes && machine.hasDelayedBytes)
    }

    @Test func `a receiver that becomes ready during a suspension is paused until the resumption`() {
        var machine = receiving()
        machine.receiverBecameFull()
        machine.setSuspended(true)
        machine.receiverReady()
        expectEqual(machine.applyChange(), .both)
        #expect(machine.hasRefusedBytes)
        machine.setSuspended(false)
        expectEqual(machine.applyChange(), [])
    }

    @Test func `bytes received during a suspension are kept until the resumption`() {
        var machine = PauseMachine()
        machine.setSuspended(true)
        // The turn has not applied the change yet.
        expectEqual(machine.receivedBytes(), .refused)
        machine.setSuspended(false)
        #expect(!machine.isApplied, "libcurl has set its bit")
        expectEqual(machine.applyChange(), [])
    }

    private static let challenge = ResponseHead(bytes: Array("HTTP/1.1 401 Unauthorized\r\nContent-Length: 5\r\n\r\n".utf8))

    @Test func `a suspension between the pending head and its body delays both`() throws {
        var machine = PauseMachine()
        machine.receivedChallenge(try #require(Self.challenge))
        machine.setSuspended(true)
        expectEqual(machine.receivedBytes(), .refused)
        expectEqual(machine.applyChange(), .both)
        machine.setSuspended(false)
        expectEqual(machine.pendingHead, Self.challenge)
        expectEqual(machine.applyChange(), [])
        expectEqual(machine.receivedBytes(), .accepted(Self.challenge))
        expectEqual(machine.receivedBytes(), .accepted(nil))
        expectNil(machine.takePendingHead())
    }

    @Test func `a full receiver has received the pending head`() throws {
        var machine = PauseMachine()
        machine.receivedChallenge(try #require(Self.challenge))
        expectEqual(machine.receivedBytes(), .accepted(Self.challenge))
        machine.receiverBecameFull()
        machine.receiverReady()
        expectEqual(machine.applyChange(), [])
        expectEqual(machine.receivedBytes(), .accepted(nil))
    }

    @Test func `an empty source is paused until it is ready`() {
        var machine = PauseMachine()
        machine.readPaused(isEmpty: true)
        #expect(machine.isApplied && !machine.hasDelayedBytes)
        machine.sourceReady()
        expectEqual(machine.applyChange(), [])
    }

    @Test func `a suspended source is read again after the resumption`() {
        var machine = receiving()
        machine.setSuspended(true)
        machine.readPaused(isEmpty: false)
        expectEqual(machine.applyChange(), .both)
        machine.setSuspended(false)
        expectEqual(machine.applyChange(), [])
    }

    @Test func `a transfer without a connection has no pause bits`() {
        var machine = receiving()
        machine.setSuspended(true)
        expectEqual(machine.applyChange(), .both)
        machine.connectionRemoved()
        machine.setSuspended(false)
        #expect(machine.isApplied)
    }

    /// A model of libcurl's bits, of a receiver and of a source, driven at random. Whatever came before, every byte arrives once
    /// the task runs and both buffers are ready.
    @Test(arguments: 0..<200) func `no order of suspensions, full receivers and empty sources strands a transfer`(seed: UInt64)
        throws
    {
        let challenge = try #require(Self.challenge)
        var random = SplitMix64(seed: seed)
        var machine = PauseMachine()
        var curl = PauseMachine.Directions()
        var (kept, unread, delivered, unsent, sent) = (0, 0, 0, 0, 0)
        var (isFull, isEmpty, total) = (false, false, 0)
        var heads = (received: 0, delivered: 0)

        func receive(_ count: Int) {
            guard case .accepted(let head) = machine.receivedBytes() else {
                curl.insert(.receiving)
                kept += count
                return
            }
            if head != nil { heads.delivered += 1 }
            if isFull {
                machine.receiverBecameFull()
                curl.insert(.receiving)
                kept += count
            } else {
                delivered += count
            }
        }
        func settle() {
            guard let bits = machine.applyChange() else { return }
            curl = bits
            if !bits.contains(.receiving), kept > 0 {
                let count = kept
                kept = 0
                receive(count)
            }
        }
        func drive() {
            if !curl.contains(.receiving), unread > 0 {
                if machine.pendingHead == nil, Bool.random(using: &random) {
                    machine.receivedChallenge(challenge)
                    heads.received += 1
                }
                let count = unread
                unread = 0
                receive(count)
            }
            if !curl.contains(.sending), unsent > 0 {
                if machine.isSuspended || isEmpty {
                    machine.readPaused(isEmpty: !machine.isSuspended)
                    curl.insert(.sending)
                } else {
                    sent += unsent
                    unsent = 0
                }
            }
        }
        for _ in 0..<200 {
            switch Int.random(in: 0..<9, using: &random) {
            case 0: machine.setSuspended(true)
            case 1: machine.setSuspended(false)
            case 2: isFull = true
            case 3:
                isFull = false
                machine.receiverReady()
            case 4: isEmpty = true
            case 5:
                isEmpty = false
                machine.sourceReady()
            case 6:
                unread += 1
                unsent += 1
                total += 1
            case 7: drive()
            default: settle()
            }
            expectEqual(curl, machine.applied, "seed \(seed)")
        }
        (isFull, isEmpty) = (false, false)
        machine.receiverReady()
        machine.sourceReady()
        machine.setSuspended(false)
        settle()
        drive()
        if machine.takePendingHead() != nil { heads.delivered += 1 }
        #expect(machine.isApplied && curl == [], "seed \(seed)")
        expectEqual(heads.received, heads.delivered, "seed \(seed)")
        expectEqual(delivered, total, "seed \(seed)")
        expectEqual(sent, total, "seed \(seed)")
    }
}
