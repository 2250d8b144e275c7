import Pacing
import Testing

@testable import HTTPSession

@Suite struct PauseMachineTests {
    /// A transfer whose body has begun.
    private func receiving() -> PauseMachine {
        var machine = PauseMachine()
        #expect(machine.receivedBytes() == .accepted(nil))
        return machine
    }

    @Test func `a suspension before the body lets the head through`() {
        var machine = PauseMachine()
        machine.hold(true)
        #expect(machine.settle() == .sending)
        #expect(machine.receivedBytes() == .refused)
        #expect(machine.applied == .both && machine.isSettled && machine.keepsBytes)
        machine.hold(false)
        #expect(machine.settle() == [])
        #expect(machine.receivedBytes() == .accepted(nil))
    }

    @Test func `a suspension pauses both directions and a resumption ends it`() {
        var machine = receiving()
        #expect(machine.settle() == nil)
        machine.hold(true)
        #expect(machine.settle() == .both)
        #expect(machine.settle() == nil)
        machine.hold(false)
        #expect(machine.settle() == [])
        #expect(machine.settle() == nil)
    }

    @Test func `a suspension and a resumption between two turns change nothing`() {
        var machine = PauseMachine()
        machine.hold(true)
        machine.hold(false)
        #expect(machine.isSettled && machine.settle() == nil)
    }

    @Test func `a full receiver stays paused through a suspension`() {
        var machine = receiving()
        machine.receiverIsFull()
        #expect(machine.isSettled && machine.keepsBytes)
        machine.hold(true)
        #expect(machine.settle() == .both)
        machine.hold(false)
        #expect(machine.settle() == .receiving)
        machine.receiverReady()
        #expect(machine.settle() == [])
        #expect(!machine.keepsBytes && machine.hasWaited)
    }

    @Test func `a receiver that becomes ready while suspended is paused until the resumption`() {
        var machine = receiving()
        machine.receiverIsFull()
        machine.hold(true)
        machine.receiverReady()
        #expect(machine.settle() == .both)
        #expect(machine.keepsBytes)
        machine.hold(false)
        #expect(machine.settle() == [])
    }

    @Test func `bytes that come while suspended are kept until the resumption`() {
        var machine = PauseMachine()
        machine.hold(true)
        // Before the turn's place to settle.
        #expect(machine.receivedBytes() == .refused)
        machine.hold(false)
        #expect(!machine.isSettled, "libcurl has set its bit")
        #expect(machine.settle() == [])
    }

    private static let challenge = ResponseHead(bytes: Array("HTTP/1.1 401 Unauthorized\r\nContent-Length: 5\r\n\r\n".utf8))

    @Test func `a suspension between the pending head and its body delays both`() throws {
        var machine = PauseMachine()
        machine.receivedChallenge(try #require(Self.challenge))
        machine.hold(true)
        #expect(machine.receivedBytes() == .refused)
        #expect(machine.settle() == .both)
        machine.hold(false)
        #expect(machine.pendingHead == Self.challenge)
        #expect(machine.settle() == [])
        #expect(machine.receivedBytes() == .accepted(Self.challenge))
        #expect(machine.receivedBytes() == .accepted(nil))
        #expect(machine.takePendingHead() == nil)
    }

    @Test func `a full receiver has got the pending head`() throws {
        var machine = PauseMachine()
        machine.receivedChallenge(try #require(Self.challenge))
        #expect(machine.receivedBytes() == .accepted(Self.challenge))
        machine.receiverIsFull()
        machine.receiverReady()
        #expect(machine.settle() == [])
        #expect(machine.receivedBytes() == .accepted(nil))
    }

    @Test func `an empty source is paused until it is ready`() {
        var machine = PauseMachine()
        machine.providedNothing(isEmpty: true)
        #expect(machine.isSettled && !machine.hasWaited)
        machine.sourceReady()
        #expect(machine.settle() == [])
    }

    @Test func `a suspended source is asked again after the resumption`() {
        var machine = receiving()
        machine.hold(true)
        machine.providedNothing(isEmpty: false)
        #expect(machine.settle() == .both)
        machine.hold(false)
        #expect(machine.settle() == [])
    }

    @Test func `a transfer without a connection has no bits`() {
        var machine = receiving()
        machine.hold(true)
        #expect(machine.settle() == .both)
        machine.hasNoConnection()
        machine.hold(false)
        #expect(machine.isSettled)
    }

    /// A model of libcurl's bits, of a receiver and of a source, driven at random: whatever came before, once the task runs and both buffers are
    /// ready every byte arrives.
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
                machine.receiverIsFull()
                curl.insert(.receiving)
                kept += count
            } else {
                delivered += count
            }
        }
        func settle() {
            guard let bits = machine.settle() else { return }
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
                if machine.isHeld || isEmpty {
                    machine.providedNothing(isEmpty: !machine.isHeld)
                    curl.insert(.sending)
                } else {
                    sent += unsent
                    unsent = 0
                }
            }
        }
        for _ in 0..<200 {
            switch Int.random(in: 0..<9, using: &random) {
            case 0: machine.hold(true)
            case 1: machine.hold(false)
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
            #expect(curl == machine.applied, "seed \(seed)")
        }
        (isFull, isEmpty) = (false, false)
        machine.receiverReady()
        machine.sourceReady()
        machine.hold(false)
        settle()
        drive()
        if machine.takePendingHead() != nil { heads.delivered += 1 }
        #expect(machine.isSettled && curl == [], "seed \(seed)")
        #expect(heads.received == heads.delivered, "seed \(seed)")
        #expect((delivered, sent) == (total, total), "seed \(seed)")
    }
}
