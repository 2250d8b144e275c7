import Console
import FoundationEssentials
import Reachability

/// The text of `why`: a line for each layer with its mark, its time and its sentence, a line with its evidence, and the conclusion.
struct WhyText {
    var document: WhyDocument
    var style: TextStyle
    /// The columns of the terminal; `nil` if lines are not wrapped.
    var columns: Int?

    private static let layerWidth = Diagnosis.layers.map(\.rawValue.count).max() ?? 0
    /// The columns before the sentence: mark, layer and time, with their gaps.
    private static let indentation = 2 + layerWidth + 2 + ReadableDuration.width + 2

    var lines: [String] {
        var lines: [String] = []
        for step in document.diagnosis.steps { lines += self.lines(step) }
        let addresses = document.evidence.addresses
        if !addresses.isEmpty { lines += [""] + addresses.flatMap { self.lines($0) } }
        let known = Set(document.evidence.report?.lookup?.addresses ?? []).count
        if !addresses.isEmpty, known > addresses.count {
            lines += wrapped("\(addresses.count) of the \(known) addresses are probed", indentation: 2).map { "  \($0)" }
        }
        return lines + [""] + conclusion(TextStyle.printable(document.diagnosis.sentence), document.assessment)
    }

    /// The conclusion about the canary; empty without one. It follows the diagnoses of all targets.
    var canaryLines: [String] {
        document.canary.map { conclusion($0.canarySentence, $0.state.assessment) } ?? []
    }

    private func conclusion(_ sentence: String, _ assessment: TextStyle.Assessment) -> [String] {
        let mark = style.paint(style.symbol(assessment), assessment)
        return wrapped(sentence, indentation: 2).enumerated().map { number, text in
            (number == 0 ? "\(mark) " : "  ") + style.paint(text, .bold)
        }
    }

    /// The lines of one address of a name: its mark, the address, the round trip, and the cause.
    private func lines(_ result: AddressResult) -> [String] {
        let assessment: TextStyle.Assessment = result.isWithoutRoute ? .neutral : result.state.assessment
        let width = document.evidence.addresses.map { "\($0.address)".count }.max() ?? 0
        let time = result.update?.roundTrip.map(ReadableDuration.text) ?? ""
        let padding = String(repeating: " ", count: max(0, ReadableDuration.width - time.count))
        let text = result.update?.cause?.sentence ?? (result.state == .up ? "answers" : "no verdict yet")
        let head = style.paint(style.symbol(assessment), assessment) + " " + TextStyle.pad("\(result.address)", width)
        let indentation = 2 + width + 2 + ReadableDuration.width + 2
        return wrapped(TextStyle.printable(text), indentation: indentation).enumerated().map { number, line in
            number == 0 ? "\(head)  \(padding)\(time)  \(line)" : String(repeating: " ", count: indentation) + line
        }
    }

    private func lines(_ step: Diagnosis.Step) -> [String] {
        let assessment: TextStyle.Assessment =
            switch step.finding {
            case .works: .good
            case .fails: .bad
            case .unproven: .uncertain
            case .notUsed, .notReached: .neutral
            }
        let isUsed = assessment != .neutral
        let time = step.duration.map(ReadableDuration.text) ?? ""
        let layer = TextStyle.pad(step.layer.rawValue, Self.layerWidth)
        let padding = String(repeating: " ", count: max(0, ReadableDuration.width - time.count))
        let head = [
            style.paint(style.symbol(assessment), assessment) + " " + (isUsed ? layer : style.paint(layer, .dim)), padding + time,
        ].joined(separator: "  ")
        let margin = String(repeating: " ", count: Self.indentation)
        let detail = wrapped(TextStyle.printable(step.detail), indentation: Self.indentation).map { text in
            step.finding == .fails ? style.paint(text, .bad) : isUsed ? text : style.paint(text, .dim)
        }
        let facts = Self.facts(step.evidence)
        let evidence = facts.isEmpty ? [] : wrapped(facts, indentation: Self.indentation).map { margin + style.paint($0, .dim) }
        return zip(0..., detail).map { number, text in number == 0 ? "\(head)  \(text)" : margin + text } + evidence
    }

    /// Returns the evidence as `name=value`, in alphabetical order. Values with spaces are quoted.
    private static func facts(_ evidence: [String: Cause.Evidence]) -> String {
        evidence.sorted { $0.key < $1.key }.map { name, fact in
            func quoted(_ text: String) -> String { text.contains(" ") || text.isEmpty ? "\"\(text)\"" : text }
            let value: String =
                switch fact {
                case .text(let text): quoted(text)
                case .number(let number): "\(number)"
                case .flag(let flag): "\(flag)"
                case .list(let texts): quoted(texts.joined(separator: ", "))
                }
            return TextStyle.printable("\(name)=\(value)")
        }.joined(separator: " ")
    }

    /// Returns the text in lines that fit beside the indentation. A longer word has a line of its own.
    private func wrapped(_ text: String, indentation: Int) -> [String] {
        guard let columns else { return [text] }
        let width = max(20, columns - 1 - indentation)
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, DisplayWidth.columns(line) + 1 + DisplayWidth.columns(String(word)) > width {
                lines.append(line)
                line = String(word)
            } else {
                line += line.isEmpty ? String(word) : " \(word)"
            }
        }
        return lines + [line]
    }
}
