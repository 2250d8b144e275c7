internal import FoundationEssentials

/// A recording, run again: the identical events, as fast as they are read.
package struct Replay {
    /// A line that is not part of a recording, or that is missing.
    package struct DamageError: Error, Hashable, Sendable {
        /// Counted from 1.
        package let line: Int
        package let why: String
    }

    package let identity: MonitorIdentity
    /// The targets that were added before the first turn ended.
    package private(set) var targets: [Endpoint] = []

    private let readLine: () throws -> String?
    private var machine: MonitorMachine
    private var lineNumber = 1
    /// The events of the inputs that ``init(readLine:)`` read.
    private var earlyEvents: [MonitorEvent] = []
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
        // Each input runs as it is read: a recording may have any number of them before its first turn ends.
        while let text = try readLine() {
            guard let input = try? decoder.decode(RecordedInput.self, from: Data(text.utf8)) else {
                held = text
                break
            }
            lineNumber += 1
            if case .targetAdded(_, let endpoint, _) = input.input { targets.append(endpoint) }
            earlyEvents += events(of: input)
            if input.input == .turnEnded || !earlyEvents.isEmpty { break }
        }
    }

    // The first line that is no input: the end, or a damaged one, which is to be named when the rest is run.
    private var held: String?

    /// Runs the remaining inputs; everything before a damaged or missing line has been given to `sink` when it throws.
    ///
    /// - Throws: ``DamageError``, also where the last line is not the one that a complete recording ends with; or what reading throws.
    package mutating func run(_ sink: (MonitorEvent) -> Void) throws {
        while let events = try next() { events.forEach(sink) }
    }

    /// Runs the next input.
    ///
    /// - Returns: its events, which may be none; `nil` at the end of the recording.
    /// - Throws: as ``run(_:)``.
    package mutating func next() throws -> [MonitorEvent]? {
        if !earlyEvents.isEmpty {
            defer { earlyEvents = [] }
            return earlyEvents
        }
        guard let text = try held ?? readLine() else {
            throw DamageError(line: lineNumber + 1, why: "is missing: the recording ends early")
        }
        held = nil
        lineNumber += 1
        guard let input = try? decoder.decode(RecordedInput.self, from: Data(text.utf8)) else {
            try end(with: text)
            return nil
        }
        return events(of: input)
    }

    private func end(with text: String) throws {
        guard let end = try? decoder.decode(RecordingEnd.self, from: Data(text.utf8)) else {
            throw DamageError(line: lineNumber, why: damage(of: text))
        }
        guard end.version == RecordingHeader.version else {
            throw DamageError(line: lineNumber, why: "ends a recording of format \(end.version)")
        }
        // All lines but the header and this one were inputs.
        guard end.inputs == lineNumber - 2 else {
            throw DamageError(line: lineNumber, why: "counts \(end.inputs) inputs where there are \(lineNumber - 2)")
        }
        if try readLine() != nil { throw DamageError(line: lineNumber + 1, why: "stands after the end of the recording") }
    }

    private mutating func events(of input: RecordedInput) -> [MonitorEvent] {
        machine.handle(input.input.event, at: input.moment).compactMap { effect in
            if case .emit(let event) = effect { event } else { nil }
        }
    }

    /// What is wrong with a line that is neither an input nor the end.
    private func damage(of text: String) -> String {
        do {
            _ = try decoder.decode(RecordedInput.self, from: Data(text.utf8))
        } catch is RecordedInput.UnknownKindError {
            return "is an input that this version does not know"
        } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
            return text.hasPrefix("{") && !text.hasSuffix("}") ? "is cut off" : "is damaged: it is not JSON"
        } catch {}
        return "is damaged: it is no input of a recording"
    }
}
