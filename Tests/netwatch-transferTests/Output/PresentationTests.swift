import Console
import Expectations
import Foundation
import Reachability
import Testing

@testable import netwatch_transfer

private let plain = StateText(offset: 3600)

/// A download at 58 % of 12 MiB, received at 1 MiB per second.
private func halfway(_ name: String = "big.bin") -> TransferStatus {
    var status = download(name)
    for event in [TransferEvent.started, .requested, .answered(status: 200, phrase: "OK")] {
        _ = status.apply(event, at: moment(0))
    }
    for second in 1...7 { status.sample(bytes: Int64(second) << 20, total: 12 << 20, at: moment(Int64(second) * 1_000)) }
    return status
}

@Suite struct StateTextTests {
    private func text(_ events: [TransferEvent], wait: Duration? = nil, at now: Int64 = 0) -> String? {
        var status = download()
        for event in [TransferEvent.started, .requested] + events { _ = status.apply(event, at: moment(0)) }
        status.sample(bytes: 0, total: nil, wait: wait, at: moment(0))
        return plain.text(status, at: moment(now))
    }

    @Test func `each state has its text`() {
        expectEqual(text([]), "connecting")
        expectEqual(text([.networkGone(Problems.noCarrier)]), "waiting for the network: link: wlan0 has no carrier, since 13:00")
        expectEqual(text([.failedForNow(Problems.busy)], wait: .seconds(8)), "trying again in 8 s: the server answered 503")
        expectEqual(
            text([.failedForNow(Problems.busy)], wait: .seconds(125)), "trying again in 2 min 05 s: the server answered 503")
        expectEqual(text([.failedForNow(Problems.busy)], wait: .seconds(8), at: 7_600), "trying again: the server answered 503")
        expectEqual(text([.failedForNow(Problems.busy), .requested]), "connecting again")
        expectNil(text([.answered(status: 200, phrase: "")]))
        expectEqual(text([.answered(status: 200, phrase: "")], at: 12_000), "no bytes received for 12 s")
    }

    @Test func `the summary counts only the bytes of this run`() {
        var status = halfway()
        _ = status.apply(.finished, at: moment(7_000))
        expectEqual(plain.ending(status), "7.0 MiB in 7.0s, 1.0 MiB/s")
        var kept = download()
        _ = kept.apply(.started, at: moment(0))
        _ = kept.apply(.requested, at: moment(0))
        _ = kept.apply(.continued(offset: 3 << 20, total: 4 << 20), at: moment(0))
        kept.sample(bytes: 4 << 20, total: 4 << 20, at: moment(2_000))
        _ = kept.apply(.finished, at: moment(2_000))
        expectEqual(plain.ending(kept), "1.0 MiB of 4.0 MiB in 2.0s, 512.0 KiB/s")
    }

    @Test(
        arguments: [
            (0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_048_575, "1023.9 KiB"), (1 << 20, "1.0 MiB"),
            (12_897_484, "12.2 MiB"),
            (Int64.max, "7.9 EiB"),
        ] as [(Int64, String)])
    func `byte counts have units`(_ count: Int64, _ text: String) { expectEqual(ByteCount.text(count), text) }

    @Test(
        arguments: [
            ("1", 1), ("500k", 512_000), ("2M", 2 << 20), ("1G", 1 << 30), ("3T", 3 << 40), ("0", nil), ("0k", nil), ("-1", nil),
            ("", nil),
            ("k", nil), ("1.5M", nil), ("1 k", nil), ("1kB", nil), ("9223372036854775807k", nil), ("9223372036854775807", .max),
            ("٣", nil),
        ] as [(String, Int64?)])
    func `--limit-rate parses sizes`(_ text: String, _ bytes: Int64?) { expectEqual(ByteCount.parse(text), bytes) }
}

@Suite struct ProgressLineTests {
    private func line(_ status: TransferStatus, _ columns: Int, isUnicode: Bool = true, nameWidth: Int = 7) -> String {
        ProgressLine(style: TextStyle(isUnicode: isUnicode), stateText: plain, columns: columns)
            .text(status, nameWidth: nameWidth, at: moment(7_000))
    }

    @Test func `a progress line drops parts that do not fit`() {
        let lines = [100, 80, 60, 40, 24, 12, 4].map { line(halfway(), $0) }
        expectEqual(
            lines,
            [
                "big.bin  [===================>               ]   58 %     7.0 MiB/12.0 MiB     1.0 MiB/s       0:05",
                "big.bin  [=======>       ]   58 %     7.0 MiB/12.0 MiB     1.0 MiB/s       0:05",
                "big.bin   58 %     1.0 MiB/s       0:05",
                "big.bin   58 %     1.0 MiB/s       0:05",
                "big.bin   58 %",
                "big…   58 %",
                "  …",
            ])
    }

    @Test(arguments: 1...130) func `no progress line reaches the last column`(columns: Int) {
        for name in ["big.bin", "名前の長いファイル.tar.gz", String(repeating: "x", count: 300), ""] {
            var waiting = halfway(name)
            _ = waiting.apply(.networkGone(Problems.noCarrier), at: moment(7_000))
            for status in [halfway(name), waiting, download(name)] {
                for isUnicode in [true, false] {
                    let text = line(status, columns, isUnicode: isUnicode, nameWidth: DisplayWidth.columns(name))
                    #expect(DisplayWidth.columns(text) <= max(1, columns - 1), "'\(text)'")
                    #expect(isUnicode || text.utf8.allSatisfy { $0 < 0x7f })
                }
            }
        }
    }

    @Test func `a state text replaces the progress bar`() {
        var status = halfway()
        _ = status.apply(.networkGone(Problems.noCarrier), at: moment(7_000))
        expectEqual(line(status, 100), "big.bin   58 %  waiting for the network: link: wlan0 has no carrier, since 13:00")
        expectEqual(line(status, 40), "big.bin   58 %  waiting for the networ…")
        expectEqual(line(status, 20), "waiting for the ne…")
    }

    @Test func `without a known length there is no progress bar`() {
        var status = download()
        for event in [TransferEvent.started, .requested, .answered(status: 200, phrase: "OK")] {
            _ = status.apply(event, at: moment(0))
        }
        status.sample(bytes: 3 << 20, total: nil, at: moment(3_000))
        let text = ProgressLine(style: TextStyle(), stateText: plain, columns: 80).text(status, nameWidth: 7, at: moment(3_000))
        #expect(text.contains("3.0 MiB     1.0 MiB/s") && !text.contains("["))
    }

    @Test func `file names are sanitized and measured in columns`() {
        expectEqual(DisplayWidth.harmless("a\u{1b}[2Jb\u{202e}c\u{200d}", isUnicode: true), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}")
        expectEqual(DisplayWidth.harmless("naïve", isUnicode: false), "na?ve")
        expectEqual(DisplayWidth.columns("日本"), 4)
        expectEqual(DisplayWidth.columns("e\u{301}"), 1)
        expectEqual(DisplayWidth.cut("日本語テスト", to: 5, isUnicode: true), "日本…")
        expectEqual(DisplayWidth.fill("日本", to: 6, isUnicode: true), "日本  ")
    }
}

@Suite struct LiveBlockTests {
    @Test func `a frame replaces the previous one`() {
        var block = LiveBlock()
        expectEqual(block.frame(live: ["one", "two"], columns: 80), "one\u{1b}[K\ntwo\u{1b}[K\n")
        expectEqual(block.frame(live: ["one", "two"], columns: 80), "", "nothing has changed")
        expectEqual(block.frame(live: ["one"], columns: 80), "\u{1b}[2A\rone\u{1b}[K\n\u{1b}[J")
        expectEqual(block.frame(permanent: ["done"], live: [], columns: 80), "\u{1b}[1A\rdone\u{1b}[K\n\u{1b}[J")
        expectEqual(block.frame(permanent: ["end"], live: [], columns: 80), "end\u{1b}[K\n")
    }

    @Test func `after the terminal became narrower, wrapped rows are erased`() {
        var block = LiveBlock()
        _ = block.frame(live: [String(repeating: "x", count: 70), "\u{1b}[33mshort\u{1b}[0m"], columns: 80)
        let frame = block.frame(live: ["a"], columns: 30)
        #expect(frame.hasPrefix("\u{1b}[4A\r"), "three rows and one")
    }

    @Test func `output of other programs is not overwritten`() {
        var block = LiveBlock()
        _ = block.frame(live: ["one"], columns: 80)
        expectEqual(block.frame(live: ["one"], columns: 80, isFresh: true), "one\u{1b}[K\n")
    }

    @Test func `a terminal with few rows shows the transfers that fit`() {
        var display = LiveDisplay(style: TextStyle(), stateText: plain, columns: 80, rows: 5)
        let text = display.frame((1...9).map { halfway("file\($0)") }, at: moment(7_000))
        expectEqual(text.split(separator: "\n").count, 3)
        #expect(text.contains("and 7 more"))
    }
}

@Suite struct StatusLinesTests {
    private func lines(_ events: [(Int64, TransferEvent)], isVerbose: Bool = false) -> [String] {
        let lines = StatusLines(stateText: plain, isVerbose: isVerbose)
        var status = download()
        return events.compactMap { time, event in
            let isOther = status.apply(event, at: moment(time))
            return lines.line(event, status, isOther: isOther, at: moment(time))
        }
    }

    private let story: [(Int64, TransferEvent)] = [
        (0, .started), (0, .requested), (10, .answered(status: 206, phrase: "Partial Content")),
        (10, .continued(offset: 6 << 20, total: 12 << 20)), (500, .networkGone(Problems.noCarrier)), (900, .requested),
        (910, .failedForNow(Problems.busy)), (920, .failedForNow(Problems.busy)), (1_000, .requested),
        (1_001, .answered(status: 200, phrase: "OK")), (2_000, .finished),
    ]

    @Test func `each change of state is one line`() {
        expectEqual(
            lines(story),
            [
                "big.bin: from http://example.test/big.bin", "big.bin: continued at 50 % (6.0 MiB of 12.0 MiB)",
                "big.bin: 50 %, waiting for the network: link: wlan0 has no carrier, since 13:00",
                "big.bin: 50 %, trying again: the server answered 503", "big.bin: restarted from the beginning",
                "big.bin: 6.0 MiB in 2.0s, 3.0 MiB/s",
            ])
    }

    @Test func `a verbose line shows no password of a redirect`() {
        let story = [(Int64(0), TransferEvent.started), (0, .requested), (10, .redirected(to: "http://bob:secret@other.test/"))]
        expectEqual(lines(story, isVerbose: true).last, "big.bin: redirected to http://bob:***@other.test/")
    }

    @Test func `verbose lines include attempts and responses`() {
        let reported = lines(story, isVerbose: true)
        #expect(reported.contains("big.bin: attempt 3"))
        #expect(reported.contains("big.bin: the server answered 206 Partial Content"))
    }
}

@Suite struct TransferRecordTests {
    @Test func `a transfer record has every key`() throws {
        var status = download()
        let first = TransferRecord(status: status, moment: moment(0)).encode(seq: 0)
        expectEqual(
            String(decoding: first, as: UTF8.self),
            #"{"v":1,"seq":0,"ts":"2026-08-02T12:00:00.000Z","mono_ns":1000000000000,"type":"transfer","#
                + #""url":"http://example.test/big.bin","state":"waiting","received":0,"sent":0,"total":null,"#
                + #""resumed_from":null,"attempt":0,"unchanged":false,"file":null,"cause":null}"#)
        _ = status.apply(.started, at: moment(0))
        _ = status.apply(.requested, at: moment(0))
        _ = status.apply(.failedForNow(Problems.busy), at: moment(5))
        let record = TransferRecord(status: status, moment: moment(5), superseded: 2).encode(seq: 7)
        #expect(
            String(decoding: record, as: UTF8.self).hasSuffix(
                #""state":"backing_off","received":0,"sent":0,"total":null,"resumed_from":null,"attempt":1,"unchanged":false,"file":null,"cause":"#
                    + #"{"layer":"http","code":"status","detail":"the server answered 503","evidence":{}},"superseded":2}"#))
    }

    @Test func `progress records are at most two per second`() {
        var pacing = RecordPacing()
        var status = download()
        expectEqual(pacing.isDue(status, of: 0, at: moment(0)), true)
        _ = status.apply(.started, at: moment(1))
        expectEqual(pacing.isDue(status, of: 0, at: moment(1)), true, "another state")
        _ = status.apply(.requested, at: moment(1))
        _ = status.apply(.answered(status: 200, phrase: ""), at: moment(2))
        var due = 0
        for time in 3...2_003 {
            status.sample(bytes: Int64(time) * 10, total: 100_000, at: moment(Int64(time)))
            if pacing.isDue(status, of: 0, at: moment(Int64(time))) { due += 1 }
        }
        #expect((4...6).contains(due))

    }

    @Test func `a slow reader misses only obsolete records`() {
        var backlog = RecordBacklog()
        let status = download()
        for number in 0..<(RecordBacklog.limit + 10) {
            backlog.push(TransferRecord(status: status, moment: moment(Int64(number))), of: number % 2)
        }
        var lines: [String] = []
        while let line = backlog.take() { lines.append(String(decoding: line, as: UTF8.self)) }
        expectEqual(lines.count, RecordBacklog.limit)
        #expect(lines.enumerated().allSatisfy { $1.contains("\"seq\":\($0),") }, "no gaps")
        let dropped = lines.compactMap { $0.firstMatch(of: /"superseded":(\d+)/).flatMap { Int($0.1) } }.reduce(0, +)
        expectEqual(dropped, 10)
    }
}
