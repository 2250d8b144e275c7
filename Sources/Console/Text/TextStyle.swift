import FoundationEssentials
import Wire

/// The style of text for people: with or without colors, and with Unicode or ASCII symbols.
package struct TextStyle: Hashable {
    /// The value of `--color`.
    package enum ColorChoice: String, CaseIterable {
        case auto, always, never
    }

    package enum Color: String {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case dim = "2"
        case bold = "1"
    }

    /// The meaning of a state, shown by a symbol and, if allowed, a color. The color alone never carries the meaning.
    package enum Assessment {
        case good, bad, uncertain, neutral
    }

    package var isColored: Bool
    /// Whether the terminal displays characters beyond ASCII.
    package var isUnicode: Bool

    /// Creates the style for the user's choice, `NO_COLOR` (no-color.org), `CLICOLOR_FORCE`, `TERM` and the locale.
    package init(choice: ColorChoice, isTerminal: Bool, environment: [String: String]) {
        func isSet(_ name: String) -> Bool { environment[name].map { !$0.isEmpty } ?? false }
        switch choice {
        case .always: isColored = true
        case .never: isColored = false
        case .auto:
            if isSet("NO_COLOR") {
                isColored = false
            } else if isSet("CLICOLOR_FORCE"), environment["CLICOLOR_FORCE"] != "0" {
                isColored = true
            } else {
                isColored = isTerminal && isSet("TERM") && environment["TERM"] != "dumb"
            }
        }
        // setlocale(3): the first variable that is set and not empty decides.
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].first(where: isSet).flatMap { environment[$0] } ?? ""
        let name = locale.lowercased()
        isUnicode = isTerminal && (name.contains("utf-8") || name.contains("utf8"))
    }

    package init(isColored: Bool = false, isUnicode: Bool = false) {
        self.isColored = isColored
        self.isUnicode = isUnicode
    }

    package func paint(_ text: String, _ color: Color) -> String {
        isColored && !text.isEmpty ? "\u{1b}[\(color.rawValue)m\(text)\u{1b}[0m" : text
    }

    package func paint(_ text: String, _ assessment: Assessment) -> String {
        switch assessment {
        case .good: paint(text, .green)
        case .bad: paint(text, .red)
        case .uncertain: paint(text, .yellow)
        case .neutral: text
        }
    }

    package func symbol(_ assessment: Assessment) -> String {
        switch assessment {
        case .good: isUnicode ? "✓" : "+"
        case .bad: isUnicode ? "✗" : "x"
        case .uncertain: "?"
        case .neutral: isUnicode ? "·" : "-"
        }
    }

    /// Returns the text filled with spaces to `width` columns.
    package static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - DisplayWidth.columns(text)))
    }

    /// Returns the text with U+FFFD in place of ``UnsafeCharacters``: names come from servers, and from the kernel, which
    /// allows almost any byte.
    package static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: UnsafeCharacters.contain) else { return text }
        return String(
            String.UnicodeScalarView(text.unicodeScalars.map { UnsafeCharacters.contain($0) ? "\u{fffd}" : $0 }))
    }
}
