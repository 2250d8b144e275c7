/// The chart of a target's round trips or response times: a line of the median over a band from the least to a high value, colored by loss.
///
/// The drawing is stretched to the width of the page, so the labels are outside of it.
struct TimeChart {
    /// The kind of the times.
    enum Kind {
        case roundTrip, responseTime

        var noun: StaticString { self == .roundTrip ? "round trip" : "response time" }
        var title: StaticString { self == .roundTrip ? "Round trips" : "Response times" }
    }

    let kind: Kind
    let points: [TimePoint]
    /// The times at the left and the right edge, in milliseconds since 1970.
    let span: Range<Int64>
    let clock: LocalClock

    private static let width = 960
    private static let height = 160

    /// The value at the top: 1, 2 or 5 times a power of 10 that is at least the highest value, in units of a ``Sample``.
    private var top: UInt64 {
        let highest = UInt64(points.compactMap { $0.highest ?? $0.high }.max() ?? 1)
        var power: UInt64 = 1
        // A value has 32 bits, so the power has at most 34.
        while true {
            for factor: UInt64 in [1, 2, 5] where factor * power >= highest { return factor * power }
            power *= 10
        }
    }

    /// Returns the figure with the times below it.
    func markup(axis: Markup) -> Markup {
        let top = top
        var bands = Markup()
        var (line, tail) = ("", "")
        var isDrawing = false
        for point in points.prefix(1_000) {
            let (left, right) = (x(point.period.lowerBound), x(point.period.upperBound))
            guard right > left else { continue }
            guard let low = point.minimum, let median = point.median, let high = point.high else {
                isDrawing = false
                if point.probes > 0 {
                    bands += """
                        <rect class=fail x="\(left)" y="0" width="\(right - left)" height="\(Self.height)"><title>\(text(point))</title></rect>
                        """
                }
                continue
            }
            let (upper, lower) = (y(high, top), y(low, top))
            bands += """
                <rect class="\(style(point))" x="\(left)" y="\(upper)" width="\(right - left)" height="\(max(2, lower - upper))">\
                <title>\(text(point))</title></rect>
                """
            if point.lost > 0 {
                // The height shows the loss too, for readers who do not distinguish the colors.
                let height = max(3, Int((point.loss * 48).rounded()))
                bands += """
                    <rect class=lost x="\(left)" y="\(Self.height - height)" width="\(right - left)" height="\(height)"/>
                    """
            }
            if let highest = point.highest { tail += "M\(left) \(y(highest, top))H\(right)" }
            line += "\(isDrawing ? "L" : "M")\(left) \(y(median, top))L\(right) \(y(median, top))"
            isDrawing = true
        }
        return """
            <figure class=chart><div class=plot><p class=scale aria-hidden=true><span>\(text(top))</span><span>\(half(top))</span><span>0</span></p>\
            <svg viewBox="0 0 \(Self.width) \(Self.height)" preserveAspectRatio="none" role="img" aria-label="\(summary)">\
            <path class=grid d="M0 .5H\(Self.width)M0 \(Self.height / 2)H\(Self.width)M0 \(Self.height)H\(Self.width)"/>\
            \(bands)\(tailPath(tail))<path class=median d="\(line)"/></svg></div>\(axis)\
            <figcaption>The line is the median; the band goes from the least \(kind.noun) to the one that 95 % do not exceed.\(tailNote(tail)) \
            Columns at the bottom show lost probes. <span class=keys><span class="key l0">no loss</span> <span class="key l1">up to 5 % lost</span> <span class="key l2">up to 20 %</span> \
            <span class="key l3">more</span> <span class="key fail">all lost</span></span></figcaption></figure>
            """
    }

    private func tailPath(_ tail: String) -> Markup { tail.isEmpty ? "" : "<path class=tail d=\"\(tail)\"/>" }

    private func tailNote(_ tail: String) -> Markup { tail.isEmpty ? "" : " 99 % do not exceed the thin lines above it." }

    private func x(_ time: Int64) -> Int {
        let length = span.upperBound - span.lowerBound
        guard length > 0 else { return 0 }
        let clamped = min(max(time, span.lowerBound), span.upperBound) - span.lowerBound
        return Int((Double(clamped) / Double(length) * Double(Self.width)).rounded())
    }

    private func y(_ value: UInt32, _ top: UInt64) -> Int {
        Self.height - Int((Double(value) / Double(top) * Double(Self.height)).rounded())
    }

    private func style(_ point: TimePoint) -> StaticString {
        switch point.loss {
        case ...0: "l0"
        case ...0.05: "l1"
        case ...0.2: "l2"
        default: "l3"
        }
    }

    private func text(_ units: UInt64) -> String {
        PageText.roundTrip(.microseconds(Int64(clamping: units) * Int64(Sample.roundTripUnit)))
    }

    private func half(_ top: UInt64) -> String {
        PageText.roundTrip(.microseconds(Int64(clamping: top) * Int64(Sample.roundTripUnit) / 2))
    }

    private func text(_ point: TimePoint) -> String {
        let time = clock.interval(point.period)
        let probes =
            point.lost > 0 ? ", \(point.lost) of \(point.probes) probes lost" : ", \(PageText.count(point.probes, "probe"))"
        guard let low = point.minimum, let median = point.median, let high = point.high else {
            return "\(time): no answer\(probes)"
        }
        let tail = point.highest.map { ", 99 % within \(text(UInt64($0)))" } ?? ""
        return "\(time): median \(text(UInt64(median))), \(text(UInt64(low))) to \(text(UInt64(high)))\(tail)\(probes)"
    }

    private var summary: String {
        let medians = points.compactMap(\.median).sorted()
        let probes = points.reduce(0) { $0.addingReportingOverflow($1.probes).partialValue }
        let lost = points.reduce(0) { $0.addingReportingOverflow($1.lost).partialValue }
        guard let least = points.compactMap(\.minimum).min(), let most = points.compactMap(\.high).max(), !medians.isEmpty else {
            return "\(kind.title): no answer"
        }
        return "\(kind.title) from \(text(UInt64(least))) to \(text(UInt64(most))), the median of the medians is "
            + "\(text(UInt64(medians[medians.count / 2]))); \(lost) of \(PageText.count(probes, "probe")) lost"
    }
}
