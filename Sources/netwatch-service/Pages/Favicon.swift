/// The icon of the page, which shows the worst state.
enum Favicon {
    static let contentType = "image/svg+xml"

    /// Returns the address of the icon of a state.
    static func address(_ state: RecordedState?) -> PageAddress { PageAddress("/favicon.svg", query: [("state", state?.name)]) }

    /// Returns the icon for a name of a state in a URL; a neutral one if the name is not known.
    static func svg(state name: String?) -> [UInt8] {
        let state = RecordedState.allCases.first { $0.name == name }
        let icon: Markup = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">\(shape(state))</svg>"
        return icon.bytes
    }

    private static func shape(_ state: RecordedState?) -> Markup {
        let line: Markup = "fill=\"none\" stroke=\"#fff\" stroke-width=\"2\" stroke-linecap=\"round\""
        return switch state {
        case .up: "<circle cx=\"8\" cy=\"8\" r=\"7.5\" fill=\"#0b7a55\"/><path d=\"M4.5 8.2l2.4 2.5 4.6-5\" \(line)/>"
        case .down: "<path d=\"M1 1h14v14H1z\" fill=\"#c0261c\"/><path d=\"M5 5l6 6M11 5l-6 6\" \(line)/>"
        case .degraded: "<path d=\"M8 .6l7.8 14.4H.2z\" fill=\"#b06f00\"/><path d=\"M8 5.6v4.2M8 12.4v.2\" \(line)/>"
        case .unreachable: "<path d=\"M8 0l8 8-8 8-8-8z\" fill=\"#7a3fb0\"/><path d=\"M4.6 8h1.8M9.6 8h1.8\" \(line)/>"
        case .maintenance:
            "<rect x=\".5\" y=\"2.5\" width=\"15\" height=\"11\" rx=\"3\" fill=\"#2469b3\"/><path d=\"M6 5.8v4.4M10 5.8v4.4\" \(line)/>"
        case .unknown, .notRecorded, nil:
            "<circle cx=\"8\" cy=\"8\" r=\"6.5\" fill=\"none\" stroke=\"#6b7480\" stroke-width=\"2.4\"/>"
        }
    }
}
