internal import FoundationEssentials

/// A recording, run again: the identical events, as fast as they are read.
package struct Replay {
    /// A line that is not part of a recording.
    package struct DamageError: Error, Hashable, Sendable {
        /// Counted from 1.
        package let line: Int
        package let why: String
    }

    package let identity: MonitorIdentity
    /// The targets that were there before anything else happened.
    package let targets: [Endpoint]

    private let readLine: () throws -> String?
    private var machine: MonitorMachine
    private var lineNumber = 1
    private var ahead: [RecordedInput] = []
    private let decoder = JSONDecoder()

    /// Reads the header of a recording and the inputs before the first turn's end; `readLine` gives the file's next line without
    /// its newline, `nil` at its end.
    ///
    /// - Throws: ``DamageError``, or what `readLine` throws.
    package init(readLine: @escaping () throws -> String?) throws {
        self.readLine = readLine
        guard let line = try readLine() else { throw DamageError(line: 1, why: "the file is empty") }
        // The version alone first: other versions may have other keys.
        if let found = try? decoder.decode(RecordingVersion.self, from: Data(line.utf8)), found.version != RecordingHeader.version
        {
            throw DamageError(line: 1, why: "has format \(found.version); this version reads format \(RecordingHeader.version)")
        }
        guard let header = try? decoder.decode(RecordingHeader.self, from: Data(line.utf8)) else {
            throw DamageError(line: 1, why: "is not the header of a recording")
        }
        guard let configuration = header.configuration else {
            throw DamageError(line: 1, why: "watches '\(header.selection)', which this version does not know")
        }
        identity = header.identity
        machine = MonitorMachine(configuration)
        var targets: [Endpoint] = []
        var number = 1
        // A damaged line is met again, and named, when the rest is run.
        while let text = try readLine() {
            number += 1
            guard let input = try? decoder.decode(RecordedInput.self, from: Data(text.utf8)) else {
                damage = Self.damage(of: text, at: number)
                break
            }
            ahead.append(input)
            if case .targetAdded(_, let endpoint, _) = input.input { targets.append(endpoint) }
            if input.input == .turnEnded { break }
        }
        lineNumber = number
        self.targets = targets
    }

    private var damage: DamageError?

    /// Runs the rest; everything before a damaged line has been given to `sink` when it throws.
    package mutating func run(_ sink: (MonitorEvent) -> Void) throws {
        for input in ahead { feed(input, sink) }
        ahead = []
        if let damage { throw damage }
        while let text = try readLine() {
            lineNumber += 1
            guard let input = try? decoder.decode(RecordedInput.self, from: Data(text.utf8)) else {
                throw Self.damage(of: text, at: lineNumber)
            }
            feed(input, sink)
        }
    }

    private mutating func feed(_ input: RecordedInput, _ sink: (MonitorEvent) -> Void) {
        for effect in machine.handle(input.input.event, at: input.moment) {
            if case .emit(let event) = effect { sink(event) }
        }
    }

    private static func damage(of text: String, at line: Int) -> DamageError {
        guard text.hasPrefix("{") else { return DamageError(line: line, why: "is no input of a recording") }
        return DamageError(line: line, why: text.hasSuffix("}") ? "is an input that this version does not know" : "is cut off")
    }
}
