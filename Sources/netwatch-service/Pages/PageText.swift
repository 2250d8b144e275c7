import Console
import Pacing
import Reachability

/// Numbers and sentences for people.
enum PageText {
    /// The maximum number of characters of a name in a list.
    static let nameLimit = 120
    /// The maximum number of characters of a sentence in a list.
    static let sentenceLimit = 240

    /// Returns a round trip with two digits or more, but no part of a microsecond: `0.009 ms`, `0.21 ms`, `4.3 ms`, `120 ms`, `1.2 s`.
    static func roundTrip(_ duration: Duration) -> String {
        let microseconds = max(0, duration.saturatingNanoseconds / 1_000)
        switch microseconds {
        case ..<100: return "\(decimal(microseconds, 3)) ms"
        case ..<1_000: return "\(decimal(microseconds / 10, 2)) ms"
        case ..<10_000: return "\(decimal(microseconds / 100, 1)) ms"
        case ..<1_000_000: return "\(microseconds / 1_000) ms"
        default: return "\(decimal(microseconds / 100_000, 1)) s"
        }
    }

    /// Returns when a certificate expires. - Parameter days: whole days, rounded down.
    static func certificate(_ days: Int) -> String {
        switch days {
        case ..<(-1): "expired \(grouped(-1 - days)) day\(days == -2 ? "" : "s") ago"
        case -1: "expired today"
        case 0: "less than a day"
        default: count(days, "day")
        }
    }

    /// Returns a part as percent with at most two decimals, rounded down, so that 100 % means all: `99.95 %`.
    static func percent(_ part: Double) -> String {
        let hundredths = Int64((min(max(part, 0), 1) * 10_000 + 1e-6).rounded(.down))
        var text = decimal(hundredths, 2)
        while text.contains("."), text.hasSuffix("0") || text.hasSuffix(".") { text.removeLast() }
        return "\(text)\u{a0}%"
    }

    /// Returns `number / 10^digits` with its decimals.
    private static func decimal(_ number: Int64, _ digits: Int) -> String {
        var scale: Int64 = 1
        for _ in 0..<digits { scale *= 10 }
        return "\(number / scale).\(String(number % scale + scale).dropFirst())"
    }

    /// Returns a number of things: `1 target`, `10,000 targets`.
    static func count(_ number: Int, _ noun: String) -> String { "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")" }

    /// Returns a number with commas between its thousands.
    static func grouped(_ number: Int) -> String {
        let digits = Array(String(number))
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, digit.isNumber, (digits.count - index) % 3 == 0, digits[index - 1].isNumber { text.append(",") }
            text.append(digit)
        }
        return text
    }

    /// The words that begin sentences. Other first words may be names, which keep their letters.
    private static let beginnings: Set<Substring> = [
        "a", "all", "an", "answers", "interface", "names", "no", "not", "nothing", "only", "packets", "the", "this",
    ]

    /// Returns a sentence with a capital letter at its beginning, unless it begins with a name.
    static func sentence(_ text: String) -> String {
        guard let word = text.split(separator: " ", maxSplits: 1).first, beginnings.contains(word) else { return text }
        return text.prefix(1).uppercased() + text.dropFirst()
    }

    /// Returns the states with their numbers: `2 down, 1 unreachable`.
    static func counts(_ counts: [(state: RecordedState, count: Int)]) -> String {
        counts.map { "\(grouped($0.count)) \($0.state.word)" }.joined(separator: ", ")
    }

    /// Returns the times of all states, faults first: `down 38 min, up 22 min, not recorded 23 h`; `up` if there is no other.
    static func times(_ times: StateTimes) -> String {
        let states: [RecordedState] = [.down, .unreachable, .degraded, .up, .maintenance, .unknown, .notRecorded]
        if times[.up] > 0, times[.up] == times.total { return "\(RecordedState.up.word)" }
        let texts = states.filter { times[$0] > 0 }.map { "\($0.word) \(LocalClock.duration(milliseconds: times[$0]))" }
        return texts.isEmpty ? "\(RecordedState.notRecorded.word)" : texts.joined(separator: ", ")
    }
}

extension Cause {
    /// The cause for people: its sentence, and its layer and code.
    func markup(limit: Int = PageText.sentenceLimit) -> Markup {
        let detail = MarkupText.shortened(PageText.sentence(detail), to: limit)
        let name = MarkupText.shortened(self.name, to: 60)
        return "<bdi>\(detail)</bdi> <code>\(name)</code>"
    }
}

extension QueryProblem {
    /// The notice on a page that ignores the parameter.
    var notice: Markup {
        let name = MarkupText.shortened(parameter, to: 60)
        return "<p class=notice>The parameter <code>\(name)</code> is ignored: \(MarkupText.shortened(detail, to: 400)).</p>"
    }
}

extension Moment {
    /// The wall clock in milliseconds since 1970.
    var milliseconds: Int64 { wallClockNanoseconds.floorDivided(by: 1_000_000).quotient }
}

extension LocalClock {
    /// Returns a time as an element: short for people, complete in its title and for programs.
    func element(_ time: Int64) -> Markup {
        "<time datetime=\"\(machine(time))\" title=\"\(full(time))\">\(short(time))</time>"
    }

    /// Returns the end of a period as an element. Its day is omitted if it is that of the start.
    func element(_ time: Int64, after start: Int64) -> Markup {
        guard date(time) == date(start) else { return element(time) }
        return "<time datetime=\"\(machine(time))\" title=\"\(full(time))\">\(self.time(time))</time>"
    }

    /// Returns the duration until now and its start: `for 12 min, since 11:51:07`. A compact one has the zone only for programs.
    func since(_ time: Int64, isCompact: Bool = false) -> Markup {
        let start: Markup = isCompact ? "<time datetime=\"\(machine(time))\">\(short(time))</time>" : element(time)
        return "for \(LocalClock.duration(milliseconds: now.elapsed(since: time))), since \(start)"
    }
}
