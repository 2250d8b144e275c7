import Pacing
import Testing

@testable import HTTPSession

@Suite struct PauseMachineTests {
    @Test func `a suspension pauses both directions and a resumption ends it`() {
        var machine = PauseMachine()
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
        var machine = PauseMachine()
        machine.refusedBytes(isFull: true)
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
        var machine = PauseMachine()
        machine.refusedBytes(isFull: true)
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
        machine.refusedBytes(isFull: false)
        machine.hold(false)
        #expect(!machine.isSettled, "libcurl has set its bit")
        #expect(machine.settle() == [])
    }

    @Test func `an empty source is paused until it is ready`() {
        var machine = PauseMachine()
        machine.providedNothing(isEmpty: true)
        #expect(machine.isSettled && !machine.hasWaited)
        machine.sourceReady()
        #expect(machine.settle() == [])
    }

    @Test func `a suspended source is asked again after the resumption`() {
        var machine = PauseMachine()
        machine.hold(true)
        machine.providedNothing(isEmpty: false)
        #expect(machine.settle() == .both)
        machine.hold(false)
        #expect(machine.settle() == [])
    }

    @Test func `a transfer without a connection has no bits`() {
        var machine = PauseMachine()
        machine.hold(true)
        #expect(machine.settle() == .both)
        machine.hasNoConnection()
        machine.hold(false)
        #expect(machine.isSettled)
    }

    /// A model of libcurl's bits, of a receiver and of a source, driven at random: whatever came before, once the task runs and both buffers are
    /// ready every byte arrives.
    @Test(arguments: 0..<200) func `no order of suspensions, full receivers and empty sources strands a transfer`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var machine = PauseMachine()
        var curl = PauseMachine.Directions()
        var (kept, unread, delivered, unsent, sent) = (0, 0, 0, 0, 0)
        var (isFull, isEmpty, total) = (false, false, 0)

        func receive(_ count: Int) {
            if machine.isHeld || isFull {
                machine.refusedBytes(isFull: !machine.isHeld)
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
        #expect(machine.isSettled && curl == [], "seed \(seed)")
        #expect((delivered, sent) == (total, total), "seed \(seed)")
    }
}
