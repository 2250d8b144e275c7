/// One line of the results.
struct Row {
    let what: String
    let measured: String
    /// The program that marks the limit, and its value.
    let limit: String
    /// The measured value divided by the limit's.
    let ratio: Double?
    /// The requirement; `nil` if there is none.
    let asked: String?
    let holds: Bool?

    /// A value beside that of a program that marks the limit. Less is better.
    static func against(
        _ what: String, _ value: Double, _ limit: Double, _ unit: (Double) -> String, _ limitName: String, atMost: Double?
    ) -> Row {
        let ratio = limit > 0 ? value / limit : 0
        return Row(
            what: what, measured: unit(value), limit: "\(limitName) \(unit(limit))", ratio: ratio,
            asked: atMost.map { "ratio ≤ \(shortest($0))" }, holds: atMost.map { ratio <= $0 })
    }

    /// A value beside that of a program that marks the limit. More is better.
    static func against(
        _ what: String, _ value: Double, _ limit: Double, _ unit: (Double) -> String, _ limitName: String, atLeast: Double
    ) -> Row {
        let ratio = limit > 0 ? value / limit : 0
        return Row(
            what: what, measured: unit(value), limit: "\(limitName) \(unit(limit))", ratio: ratio,
            asked: "ratio ≥ \(shortest(atLeast))", holds: ratio >= atLeast)
    }

    /// The values of several rounds beside those of a program that marks the limit. Less is better. The ratio is the median of the
    /// rounds' ratios: the speed of a machine that others use changes from round to round, for both programs. The line has their
    /// range.
    static func rounds(
        _ what: String, _ values: [Double], _ limits: [Double], _ unit: (Double) -> String, _ limitName: String, atMost: Double
    ) -> Row {
        let ratios = zip(values, limits).map { $1 > 0 ? $0 / $1 : 0 }
        let ratio = Distribution(ratios).median
        let range = "ratios of the rounds \(decimal(ratios.min() ?? 0, 2)) to \(decimal(ratios.max() ?? 0, 2))"
        return Row(
            what: "\(what), \(range)", measured: unit(Distribution(values).median),
            limit: "\(limitName) \(unit(Distribution(limits).median))", ratio: ratio, asked: "ratio ≤ \(shortest(atMost))",
            holds: ratio <= atMost)
    }

    /// A value with a fixed bound, and that of another program to compare it with.
    static func bound(
        _ what: String, _ value: Double, beside other: Double, _ unit: (Double) -> String, _ otherName: String, atMost: Double
    ) -> Row {
        Row(
            what: what, measured: unit(value), limit: "\(otherName) \(unit(other))", ratio: nil, asked: "≤ \(unit(atMost))",
            holds: value <= atMost)
    }

    /// A value with a fixed bound.
    static func bound(_ what: String, _ value: Double, _ unit: (Double) -> String, atMost: Double? = nil) -> Row {
        Row(
            what: what, measured: unit(value), limit: "", ratio: nil, asked: atMost.map { "≤ \(unit($0))" },
            holds: atMost.map { value <= $0 })
    }
}

/// The results as a Markdown table, aligned so that it is readable on a terminal too.
struct Table {
    /// The subject of the measurements.
    let subject: String
    var rows: [Row] = []

    var text: String {
        let head = ["measurement", subject, "limit", "ratio", "asked", ""]
        let cells = rows.map { row in
            [
                row.what, row.measured, row.limit, row.ratio.map { decimal($0, 2) } ?? "", row.asked ?? "",
                row.holds.map { $0 ? "holds" : "MISSED" } ?? "",
            ]
        }
        let widths = head.indices.map { column in ([head] + cells).map { $0[column].count }.max() ?? 0 }
        let line = { (cells: [String]) in
            "| " + zip(cells, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: " | ") + " |"
        }
        let rule = "|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|") + "|"
        return ([line(head), rule] + cells.map(line)).joined(separator: "\n")
    }
}

func decimal(_ value: Double, _ places: Int) -> String {
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let scaled = Int64((value * scale).rounded())
    guard places > 0 else { return "\(scaled)" }
    let fraction = String(abs(scaled) % Int64(scale))
    return
        "\(scaled < 0 ? "-" : "")\(abs(scaled) / Int64(scale)).\(String(repeating: "0", count: places - fraction.count))\(fraction)"
}

/// The value with one or two decimal places.
func shortest(_ value: Double) -> String {
    let text = decimal(value, 2)
    return text.hasSuffix("0") ? String(text.dropLast()) : text
}

func microseconds(_ nanoseconds: Double) -> String { "\(decimal(nanoseconds / 1e3, 0)) µs" }
func milliseconds(_ nanoseconds: Double) -> String { "\(decimal(nanoseconds / 1e6, 1)) ms" }
func seconds(_ nanoseconds: Double) -> String { "\(decimal(nanoseconds / 1e9, 2)) s" }
func kibibytes(_ kibibytes: Double) -> String { "\(decimal(kibibytes, 1)) KiB" }
func mebibytes(_ kibibytes: Double) -> String { "\(decimal(kibibytes / 1024, 1)) MB" }
func count(_ value: Double) -> String { decimal(value, 0) }
