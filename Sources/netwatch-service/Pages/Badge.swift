/// A badge for documents elsewhere: a name, and a state with its availability.
struct Badge: Hashable, Sendable {
    static let contentType = "image/svg+xml"

    /// The text on the left.
    var name: String
    /// The state, which gives the color; `nil` for a name that is not known.
    var state: RecordedState?
    /// The text on the right.
    var text: String

    /// Creates the badge of a target: its state, and its availability in a span.
    static func target(_ target: BoardTarget, span: BarSpan? = nil) -> Badge {
        var text = "\(target.state.word)"
        if let span {
            text = Availability(target.times[span]).server.map(PageText.percent) ?? "not observed"
            text += " in \(span.rawValue)"
        }
        return Badge(name: target.title, state: target.state, text: text)
    }

    /// Creates the badge of a group: `3 of 4 up`, with the color of the worst state; `nil` if no target has the group.
    static func group(_ name: String, on board: Board) -> Badge? {
        let counts = board.targets.reduce(into: StateCounts()) { if $1.group == name { $0[$1.state] += 1 } }
        guard let worst = counts.worst else { return nil }
        let good = counts[.up] + counts[.degraded]
        return Badge(name: name, state: worst, text: "\(PageText.grouped(good)) of \(PageText.grouped(counts.total)) up")
    }

    /// Creates the badge of a target by its identifier, or of a group. A name that neither has gives a badge that says so.
    static func named(_ name: String, on board: Board, span: BarSpan? = nil) -> Badge {
        if let target = board.targets.first(where: { $0.key == name || $0.id == name }) { return .target(target, span: span) }
        return group(name, on: board) ?? Badge(name: name, state: nil, text: "not known")
    }

    private static let height = 20
    private static let limit = 60

    /// Returns the badge as an SVG document.
    func svg() -> [UInt8] {
        // A badge has one line.
        let name = MarkupText.shortened(name.replacing("\n", with: " "), to: Self.limit)
        let (left, right) = (Self.width(name), Self.width(text))
        let badge: Markup = """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(left + right)" height="\(Self.height)" role="img" \
            aria-label="\(name): \(text)"><title>\(name): \(text)</title>\
            <clipPath id="c"><rect width="\(left + right)" height="\(Self.height)" rx="3"/></clipPath><g clip-path="url(#c)">\
            <rect width="\(left)" height="\(Self.height)" fill="#3d444d"/>\
            <rect x="\(left)" width="\(right)" height="\(Self.height)" fill="\(color)"/></g>\
            <g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">\
            <text x="\(left / 2)" y="14" textLength="\(left - 12)" lengthAdjust="spacingAndGlyphs">\(name)</text>\
            <text x="\(left + right / 2)" y="14" textLength="\(right - 12)" lengthAdjust="spacingAndGlyphs">\(text)</text></g></svg>
            """
        return badge.bytes
    }

    /// The width of a part in pixels: the characters of Verdana at 11 pixels, with 6 pixels at each side.
    private static func width(_ text: String) -> Int {
        let tenths = text.unicodeScalars.reduce(0) { sum, scalar in
            switch scalar {
            case "i", "j", "l", "I", ".", ",", ":", " ", "'", "|": sum + 38
            case "m", "w", "M", "W", "%": sum + 105
            case "A"..."Z": sum + 76
            default: sum + (scalar.isASCII ? 68 : 112)
            }
        }
        return max(20, tenths / 10 + 12)
    }

    // White text has a contrast of 4.5 or more on each.
    private var color: StaticString {
        switch state {
        case .up: "#0b7a55"
        case .down: "#c0261c"
        case .degraded: "#8f5a00"
        case .unreachable: "#7a3fb0"
        case .maintenance: "#2469b3"
        case .unknown, .notRecorded, nil: "#5f6873"
        }
    }
}
