import ArgumentParser
import Console
import Reachability

/// What http and https targets answer, beside the status and what the body has to match.
struct ExpectationOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("A regular expression that the first 64 KiB of the body must not match.", valueName: "expression"))
    var expectNotBody: String?

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A field of the response, and a regular expression for its value. Repeatable.", valueName: "name: expression"))
    var expectHeader: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A field with no value that matches. Repeatable.", valueName: "name: expression"))
    var expectNotHeader: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A value of the body as JSON: '/status equals ok', or differs, above, below, matches, exists. Repeatable.",
            valueName: "pointer comparison value"))
    var expectJson: [String] = []

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The bytes of the body: 100-2000, 100- or -2000.", valueName: "range"))
    var expectSize: String?

    func apply(to http: inout HTTPProbeSettings) throws(Failure) {
        if let expectNotBody {
            do { try http.expectBody(expectNotBody, mustMatch: false) } catch {
                throw .usage("--expect-not-body", error.description)
            }
        }
        try expect(expectHeader, "--expect-header", mustMatch: true, &http)
        try expect(expectNotHeader, "--expect-not-header", mustMatch: false, &http)
        for rule in expectJson {
            let option = "--expect-json \(rule)"
            let words = rule.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count > 1, let comparison = Self.comparison(words[1], words.count > 2 ? String(words[2]) : nil) else {
                throw .usage(option, "write POINTER equals|differs|above|below|matches VALUE, or POINTER exists [true|false]")
            }
            do { try http.expectJSON(String(words[0]), comparison) } catch { throw .usage(option, error.description) }
        }
        if let expectSize { http.bodySizes = try Self.sizes(expectSize) }
    }

    private func expect(
        _ rules: [String], _ option: String, mustMatch: Bool, _ http: inout HTTPProbeSettings
    ) throws(Failure) {
        for rule in rules {
            guard let colon = rule.firstIndex(of: ":") else { throw .usage("\(option) \(rule)", "write NAME: EXPRESSION") }
            let pattern = rule[rule.index(after: colon)...].drop { $0 == " " }
            do { try http.expectField(String(rule[..<colon]), String(pattern), mustMatch: mustMatch) } catch {
                throw .usage("\(option) \(rule)", error.description)
            }
        }
    }

    private static func comparison(_ word: Substring, _ value: String?) -> HTTPProbeSettings.JSONComparison? {
        switch (word, value) {
        case ("equals", let value?): .equals(value)
        case ("differs", let value?): .differs(from: value)
        case ("above", let value?): Double(value).map { .above($0) }
        case ("below", let value?): Double(value).map { .below($0) }
        case ("matches", let value?): .matches(value)
        case ("exists", nil), ("exists", "true"): .exists(true)
        case ("exists", "false"): .exists(false)
        default: nil
        }
    }

    private static func sizes(_ text: String) throws(Failure) -> ClosedRange<Int> {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, text != "-" else { throw .usage("--expect-size \(text)", "write MIN-MAX, MIN- or -MAX") }
        let (least, most) = (ends[0].isEmpty ? 0 : Int(ends[0]), ends[1].isEmpty ? Int.max : Int(ends[1]))
        guard let least, let most, least <= most else { throw .usage("--expect-size \(text)", "write MIN-MAX, MIN- or -MAX") }
        return least...most
    }
}
