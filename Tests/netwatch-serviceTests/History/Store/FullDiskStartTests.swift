import EventLoop
import Expectations
import Foundation
import GRDB
import Glibc
import NetworkLab
import Reachability
import Testing

@testable import netwatch_service

/// Starts of the service on a full disk.
@Suite(.timeLimit(.minutes(5)), .requiresMounts) struct FullDiskStartTests {
    private let noon = TestHistory.noon

    private static func open(_ history: HistoryStore.Settings, at time: Int64, _ statuses: Locked<[RecordingStatus]>) throws
        -> (store: HistoryStore, recovered: HistoryStore.Recovered)
    {
        try HistoryStore.open(history, calendar: DayCalendar { _ in 0 }, now: TestHistory.reading(time)) { status in
            statuses.withLock { $0.append(status) }
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `a history continues on a full disk, and is recorded again when there is room`(isKilled: Bool, isStoppedWhenFull: Bool)
        throws
    {
        let (noon, history) = (noon, try TestHistory())
        let folder = history.folder
        var settings = history.settings
        settings.timeZone = "Europe/Berlin"
        let first = settings
        try TestDisk.withOwnMounts {
            var settings = first
            try TestDisk.mount(folder.path, size: "2m")
            let (before, _) = try Self.open(settings, at: noon, Locked([]))
            // The write-ahead log of a long run may have room that its transactions do not use.
            try before.database.queue().writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
            try expectEqual(before.numbers("a", "b"), [0, 1])
            before.record(noon, .begin(target: 0, .up, at: noon), .begin(target: 1, .down, at: noon))
            let incident = Incident(
                id: "one", scope: .server, subject: .init(.target, "b"), cause: Cause(.tcp, .refused, detail: "refused"),
                from: Date(timeIntervalSince1970: Double(noon) / 1_000))
            before.record(incident) {}
            before.record(noon + 5_000, .sample(target: 0, Sample(time: noon + 5_000, state: .up, roundTrip: 1)))
            before.record(noon + 10_000)
            before.settle()
            if isKilled {
                let copy = folder.file("killed")
                try FileManager.default.copyItem(atPath: settings.directory, toPath: copy)
                settings.directory = copy
            }
            before.close()
            var filler = try TestDisk.fill(folder.path)

            // b is no longer a target, and c is a new one.
            let statuses = Locked<[RecordingStatus]>([])
            var (store, recovered) = try Self.open(settings, at: noon + 60_000, statuses)
            #expect(!store.status.isRecording && store.status.since == noon + 60_000)
            expectEqual(store.status.reason?.contains("the disk is full"), true, "\(store.status)")
            #expect(recovered.targets.map(\.key) == ["a", "b"] && recovered.notes.isEmpty)
            expectEqual(recovered.unrecordedUntil, nil)
            #expect(recovered.lastAlive?.wall == noon + 10_000 && recovered.interrupted.map(\.id) == ["one"])
            #expect(recovered.ledgers[0]?.currentHour.times[.up] == 10_000 && recovered.ledgers[0]?.currentHour.probes == 1)
            expectEqual(recovered.ledgers[1]?.end, noon + 10_000)
            #expect(try store.numbers("a", "c") == [0, 2] && store.numbers("c", "d") == [2, 3])
            var (began, stopped) = (noon + 60_000, noon + 10_000)
            func begin() {
                store.record(
                    began, .gap(HistoryGap(period: stopped..<began, reason: .stopped)), .begin(target: 0, .unknown, at: began),
                    .begin(target: 2, .unknown, at: began))
                store.record(began + 2_000, .sample(target: 2, Sample(time: began + 2_000, state: .up, roundTrip: 1)))
                store.settle()
            }
            begin()
            #expect(!store.status.isRecording && store.droppedSamples == 1)
            // Questions have the history until the stop.
            let span = noon..<noon + 10_000
            try expectEqual(store.query { try $0.summaries(span) }[0]?.times[.up], 10_000)
            if isStoppedWhenFull {
                store.close()
                unlink(filler)
                filler = try TestDisk.fill(folder.path)
                began = noon + 120_000
                (store, recovered) = try Self.open(settings, at: began, statuses)
                stopped = try #require(recovered.lastAlive?.wall)
                // The service ran until its last turn.
                expectEqual(recovered.unrecordedUntil, noon + 62_000)
                #expect(stopped == noon + 10_000 && recovered.ledgers[0]?.currentHour.times[.up] == 10_000)
                try expectEqual(store.numbers("a", "c"), [0, 2])
                begin()
            }
            // The end of SQLite's connection can free room, which the log then uses.
            let isLost = store.recorder.failure != nil
            unlink(filler)
            var time = began + 10_000
            for _ in 0..<8 {
                time += 2_000
                store.record(time, .change(target: 2, .degraded, at: time))
                store.settle()
            }
            #expect(store.status.isRecording)
            expectEqual(statuses.withLock { $0.map(\.isRecording) }, (isStoppedWhenFull ? [false, false, true] : [false, true]))
            try expectEqual(store.query { try $0.targets() }.map(\.key).prefix(3), ["a", "b", "c"])
            let whole = noon..<time
            let running = try store.query { try $0.summaries(whole) }
            store.close()

            let reader = try HistoryReader.open(directory: settings.directory, calendar: DayCalendar { _ in 0 })
            try expectEqual(reader.summaries(whole), running)
            let gaps = try reader.gaps(0..<Int64.max)
            expectEqual(gaps.first, HistoryGap(period: noon + 10_000..<began, reason: .stopped))
            expectEqual(gaps.dropFirst().map(\.reason), (isLost ? [.notRecorded] : []), "\(gaps)")
            #expect(gaps.dropFirst().allSatisfy { $0.period.lowerBound == began }, "\(gaps)")
            #expect(running[0]?.times[.up] == 10_000 && running[0]?.times.total == time - noon)
            // The time of a removed target ends with the former run.
            #expect(running[1]?.times[.down] == 10_000 && running[1]?.times[.notRecorded] == time - noon - 10_000)
            #expect(running[2]?.times[.degraded] ?? 0 > 0)
            try expectEqual(reader.incidents(0..<Int64.max).elements.map(\.state), [.open])
            reader.close()
            try expectEqual(HistoryReader.timeZone(of: StateDirectory(path: settings.directory)), "Europe/Berlin")
        }
    }

    @Test func `a number in the logs of the former run is not given to another target`() throws {
        let history = try TestHistory()
        let (store, _) = try Self.open(history.settings, at: noon, Locked([]))
        // Those logs have targets whose rows were never written.
        store.pending.withLock { $0.firstNumber = 5 }
        try expectEqual(store.numbers("a", "b"), [5, 6])
        store.close()
        let (next, _) = try Self.open(history.settings, at: noon + 1_000, Locked([]))
        try expectEqual(next.numbers("b", "c"), [6, 7])
        next.close()
    }

    @Test func `a new history on a full disk is refused with one line`() throws {
        let (noon, history) = (noon, try TestHistory())
        let (folder, settings) = (history.folder, history.settings)
        try TestDisk.withOwnMounts {
            try TestDisk.mount(folder.path, size: "1m")
            _ = try TestDisk.fill(folder.path)
            let error = #expect(throws: StoreError.self) { _ = try Self.open(settings, at: noon, Locked([])) }
            #expect(
                error?.code == .inputOutput && error?.reason.contains("the disk is full") == true, "\(String(describing: error))")
            #expect(error?.reason.contains("\n") == false)
        }
    }
}
