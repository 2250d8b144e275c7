import FoundationEssentials
import Pacing

@testable import HTTPSession

/// A server with one file, which changes. Its validators and lengths are true if it sends any. Its ranges may be wrong in every
/// way.
struct SimulatedServer {
    /// The validators that distinguish the versions of the file.
    enum Validators: CaseIterable {
        case tag, weakTag, date, youngDate, none
    }

    /// A response, with the version and the range of its body's bytes.
    struct Answer {
        var head: ResponseHead
        var version: Int
        var bytes: Range<Int64>
    }

    /// The length of each version.
    private(set) var lengths: [Int64] = []
    private var validators = Validators.tag
    private var knowsRanges = true
    private var tellsLengths = true
    private var dice: SplitMix64

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        change()
    }

    private var version: Int { lengths.count - 1 }
    private var length: Int64 { lengths[version] }

    mutating func change() {
        lengths.append(.random(in: 1...400_000, using: &dice))
        guard chance(30) || version == 0 else { return }
        validators = chance(40) ? .tag : Validators.allCases.randomElement(using: &dice) ?? .tag
        (knowsRanges, tellsLengths) = (chance(85), chance(70))
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &dice) < percent }

    // MARK: Fields

    /// The date of a version. Two versions of one second have the same date, so such a date is no validator.
    private func date(of version: Int) -> String {
        let second = validators == .youngDate ? version / 2 : version
        let (minute, seconds) = (second / 60 % 60, second % 60)
        let year = validators == .youngDate ? 1995 : 1994
        return "Sun, 06 Nov \(year) \(two(second / 3_600 % 24)):\(two(minute)):\(two(seconds)) GMT"
    }

    private func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// The value that `If-Range` must have.
    private var validator: String? {
        switch validators {
        case .tag: "\"\(version)\""
        case .weakTag, .none: nil
        case .date, .youngDate: date(of: version)
        }
    }

    private var validatorFields: [String] {
        switch validators {
        case .tag: ["ETag: \"\(version)\""]
        case .weakTag:
            ["ETag: W/\"\(version / 2)\"", "Last-Modified: \(date(of: version))", "Date: Mon, 07 Nov 1996 00:00:00 GMT"]
        case .date: ["Last-Modified: \(date(of: version))", "Date: Mon, 07 Nov 1996 00:00:00 GMT"]
        case .youngDate: ["Last-Modified: \(date(of: version))", "Date: \(date(of: version))"]
        case .none: []
        }
    }

    private func answer(_ status: Int, _ fields: [String], _ bytes: Range<Int64> = 0..<0) -> Answer? {
        let text = "HTTP/1.1 \(status) X\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return ResponseHead(bytes: Array(text.utf8)).map { Answer(head: $0, version: version, bytes: bytes) }
    }

    // MARK: Answers

    mutating func answer(to lines: [String]) -> Answer? {
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<4: return answer(503, chance(50) ? ["Retry-After: \(Int.random(in: 0...20, using: &dice))"] : [])
        case 4..<6: return answer(500, [])
        case 6: return answer(404, [])
        case 7: return answer([304, 412, 416].randomElement(using: &dice) ?? 304, validatorFields)
        case 8: return partialContent(from: .random(in: 0..<length, using: &dice), isAsked: false)
        default: break
        }
        func value(_ name: String) -> String? {
            lines.first { $0.hasPrefix("\(name): ") }.map { String($0.dropFirst(name.count + 2)) }
        }
        if let tag = value("If-None-Match") { return tag == validator ? answer(304, validatorFields) : complete }
        if let date = value("If-Modified-Since") { return date == validator ? answer(304, validatorFields) : complete }
        guard knowsRanges, let range = value("Range"), let start = Int64(range.dropFirst("bytes=".count).dropLast()) else {
            return complete
        }
        // Some servers do not know If-Range.
        let isAsked = value("If-Range") == validator
        guard isAsked || chance(20) else { return complete }
        guard start < length else { return answer(416, validatorFields + ["Content-Range: bytes */\(length)"]) }
        return partialContent(from: start, isAsked: isAsked)
    }

    private var complete: Answer? {
        answer(200, validatorFields + (tellsLengths ? ["Content-Length: \(length)"] : []), 0..<length)
    }

    /// A 206 response. `isAsked` is true if it has the requested version. A response with another version must say so, since no
    /// client could notice otherwise.
    private mutating func partialContent(from start: Int64, isAsked: Bool) -> Answer? {
        var (start, end) = (start, length)
        if chance(15) { end = .random(in: start..<length, using: &dice) + 1 }
        var fields = validatorFields
        var total = "\(length)"
        switch Int.random(in: 0..<24, using: &dice) {
        case 0: if isAsked { fields = [] }
        case 1: total = "\(length + 1)"
        case 2: total = "*"
        case 3: start = max(0, start - 1)
        case 4: start = min(end - 1, start + 1)
        case 5: return answer(206, fields + ["Content-Type: multipart/byteranges; boundary=x"], start..<end)
        case 6: fields.append("Content-Encoding: gzip")
        case 7: fields.append("Content-Length: \(end - start + 1)")
        default: break
        }
        // The range in Content-Range is true, since no client could notice a false one.
        fields.append("Content-Range: bytes \(start)-\(end - 1)/\(total)")
        return answer(206, fields, start..<end)
    }
}
