import Console
import Reachability

extension ProbeSettings {
    /// Sets a key of a kind of probe from the text `KIND.KEY=VALUE` of `--set`.
    ///
    /// - Throws: ``Failure`` with code 64 for an unknown key or a value that is not valid.
    mutating func set(_ assignment: String) throws(Failure) {
        let option = "--set \(assignment)"
        guard let sign = assignment.firstIndex(of: "=") else { throw .usage(option, "write KIND.KEY=VALUE, as in ping.count=3") }
        let (name, text) = (String(assignment[..<sign]), String(assignment[assignment.index(after: sign)...]))
        var known: [String] = []
        for settings in ProbeKinds.all.filter({ !$0.isReported }).flatMap(\.settings) {
            if try set(settings, name, text, option, &known) { return }
        }
        throw .usage(option, "there is no such key; the keys are \(known.joined(separator: ", "))")
    }

    /// Returns whether the key is one of these settings.
    private mutating func set<Settings: KindSettings>(
        _: Settings.Type, _ name: String, _ text: String, _ option: String, _ known: inout [String]
    ) throws(Failure) -> Bool {
        for key in Settings.keys {
            known.append("\(Settings.name).\(key.name)")
            guard known.last == name else { continue }
            var settings = self[kind: Settings.self]
            switch key.form {
            case .number(let path, let range): settings[keyPath: path] = try Self.number(text, in: range, option)
            case .optionalNumber(let path, let range): settings[keyPath: path] = try Self.number(text, in: range, option)
            case .duration(let path, let range): settings[keyPath: path] = try Self.duration(text, in: range, option)
            case .optionalDuration(let path, let range): settings[keyPath: path] = try Self.duration(text, in: range, option)
            case .flag(let path):
                guard let flag = Bool(text) else { throw .usage(option, "write true or false") }
                settings[keyPath: path] = flag
            // A list has the texts of all options.
            case .text(let limit, let set), .texts(let limit, let set):
                guard text.utf8.count <= limit else { throw .usage(option, "is longer than \(limit) bytes") }
                do { try set(&settings, text) } catch { throw .usage(option, "\(error)") }
            case .maps(let names, let add):
                let (name, text) = Self.member(text)
                guard names.contains(name) else {
                    throw .usage(option, "write KEY: VALUE with one of \(names.joined(separator: ", "))")
                }
                do { try add(&settings, [name: text]) } catch { throw .usage(option, "\(error)") }
            }
            self[kind: Settings.self] = settings
            return true
        }
        return false
    }

    /// Returns the key and the value of a map with one member, `KEY: VALUE`.
    private static func member(_ text: String) -> (String, String) {
        guard let colon = text.firstIndex(of: ":") else { return (text, "") }
        let value = text[text.index(after: colon)...]
        return (String(text[..<colon]), String(value.first == " " ? value.dropFirst() : value))
    }

    private static func duration(_ text: String, in range: ClosedRange<Duration>, _ option: String) throws(Failure) -> Duration {
        let duration: Duration
        do { duration = try TimeSpan(text).duration } catch { throw .usage(option, error.description) }
        guard range.contains(duration) else {
            let (shortest, longest) = (TimeSpan.exact(range.lowerBound), TimeSpan.exact(range.upperBound))
            throw .usage(option, "must be from \(shortest) to \(longest)")
        }
        return duration
    }

    private static func number(_ text: String, in range: ClosedRange<Int>, _ option: String) throws(Failure) -> Int {
        guard let number = Int(text), range.contains(number) else {
            throw .usage(option, "must be from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
