internal import FoundationEssentials

/// A replay of a recording. It emits the recorded events as fast as their inputs are read.
package struct Replay {
    /// The error of a line that is missing, or not part of a recording.
    package struct DamageError: Error, Hashable, Sendable {
        /// The number of the line, from 1.
        package let line: Int
        package let reason: String
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

    /// Reads the header of a recording and the inputs before the end of the first turn. `readLine` returns the file's next line
    /// without its newline; `nil` at the end of the file.
    ///
    /// - Throws: ``DamageError``, or the error of `readLine`.
    package init(readLine: @escaping () throws -> String?) throws {
        self.readLine = readLine
        guard let line = try readLine() else { throw DamageError(line: 1, reason: "the file is empty") }
        // The version is decoded first, because other versions may have other keys.
        if let found = try? decoder.decode(RecordingVersion.self, from: Data(line.utf8)), found.version != RecordingHeader.version
        {
            let reason = "has format \(found.version); this version reads format \(RecordingHeader.version)"
            throw DamageError(line: 1, reason: reason)
        }
        guard let header = try? decoder.decode(RecordingHeader.self, from: Data(line.utf8)) else {
            throw DamageError(line: 1, reason: "is not the header of a recording")
        }
        guard let configuration = header.configuration else {
            throw DamageError(line: 1, reason: "watches '\(header.selection)', which this version does not know")
        }
        identity = header.identity
        machine = MonitorMachine(configuration)
        // Each input is handled as it is read: a recording may have any number of inputs before the first turn ends.
        while let text = try readLine() {
            guard let input = try? decoder.decode(RecordedInput.self, from: Data(text.utf8)) else {
                pendingLine = text
                break
            }
            lineNumber += 1
            if case .targetAdded(_, let endpoint, _) = input.input { targets.append(endpoint) }
            earlyEvents += events(of: input)
            if input.input == .turnEnded || !earlyEvents.isEmpty { break }
        }
    }

    // The first line that is not an input: the end line, or a damaged line, which ``next()`` will report.
    private var pendingLine: String?

    /// Runs the remaining inputs. Before it throws, `sink` has received all events before the damaged or missing line.
    ///
    /// - Throws: ``DamageError``, also if the last line is not the end line of a complete recording; or the error of reading.
    package mutating func run(_ sink: (MonitorEvent) -> Void) throws {
        while let events = try next() { events.forEach(sink) }
    }

    /// Runs the next input.
    ///
    /// - Returns: the events of the input, possibly none; `nil` at the end of the recording.
    /// - Throws: the same errors as ``run(_:)``.
    package mutating func next() throws -> [MonitorEvent]? {
        if !earlyEvents.isEmpty {
            defer { earlyEvents = [] }
            return earlyEvents
        }
        guard let text = try pendingLine ?? readLine() else {
            throw DamageError(line: lineNumber + 1, reason: "is missing: the recording ends early")
        }
        pendingLine = nil
        lineNumber += 1
        guard let input = try? decoder.decode(RecordedInput.self, from: Data(text.utf8)) else {
            try end(with: text)
            return nil
        }
        return events(of: input)
    }

    private func end(with text: String) throws {
        guard let end = try? decoder.decode(RecordingEnd.self, from: Data(text.utf8)) else {
            throw DamageError(line: lineNumber, reason: damage(of: text))
        }
        guard end.version == RecordingHeader.version else {
            throw DamageError(line: lineNumber, reason: "ends a recording of format \(end.version)")
        }
        // All lines except the header and this line were inputs.
        guard end.inputs == lineNumber - 2 else {
            throw DamageError(line: lineNumber, reason: "counts \(end.inputs) inputs where there are \(lineNumber - 2)")
        }
        if try readLine() != nil { throw DamageError(line: lineNumber + 1, reason: "stands after the end of the recording") }
    }

    private mutating func events(of input: RecordedInput) -> [MonitorEvent] {
        machine.handle(input.input.event, at: input.moment).compactMap { effect in
            if case .emit(let event) = effect { event } else { nil }
        }
    }

    /// Returns the reason why a line is neither an input nor the end line.
    private func damage(of text: String) -> String {
        do {
            _ = try decoder.decode(RecordedInput.self, from: Data(text.utf8))
        } catch is RecordedInput.UnknownKindError {
            return "is an input that this version does not know"
        } catch let error as RecordedNumberError {
            return "has a number out of range: \(error.description)"
        } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
            return text.hasPrefix("{") && !text.hasSuffix("}") ? "is cut off" : "is damaged: it is not JSON"
        } catch {}
        return "is damaged: it is no input of a recording"
    }
}
