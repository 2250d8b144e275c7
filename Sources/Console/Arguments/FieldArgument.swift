import FoundationEssentials

/// A header field among the arguments: `-H 'Name: value'`, `-H 'Name;'` for an empty value, or a line of `-H @FILE`. The name and the value are
/// not checked.
package struct FieldArgument: Hashable, Sendable {
    package var name: String
    package var value: String
    /// The argument, and the line of its file, for errors.
    package var place: String

    /// Reads the fields of these values of `-H`.
    ///
    /// - Throws: ``Failure`` with code 64 for a field without a colon or a value, 66 for a file that cannot be read, and 65 for one that is no text or
    ///   has no field.
    package static func all(in headers: [String]) throws(Failure) -> [FieldArgument] {
        var fields: [FieldArgument] = []
        for header in headers {
            guard header.hasPrefix("@") else {
                // The value may be a secret.
                let name = header.prefix { $0 != ":" && $0 != ";" && !$0.isWhitespace }
                fields.append(
                    try FieldArgument(line: header, place: "-H '\(name)\(name.endIndex == header.endIndex ? "" : "…")'"))
                continue
            }
            let lines = try ArgumentFile.lines(of: header, "-H")
            guard lines.contains(where: { !$0.isEmpty }) else {
                throw Failure(ExitCode.badData, "-H \(header): the file has no field; write one per line, as 'Name: value'")
            }
            for (number, line) in lines.enumerated() where !line.isEmpty {
                fields.append(try FieldArgument(line: line, place: "-H \(header): line \(number + 1)"))
            }
        }
        return fields
    }

    private init(line: String, place: String) throws(Failure) {
        guard let colon = line.firstIndex(of: ":") else {
            // As in curl.
            guard line.hasSuffix(";") else { throw .usage(place, "write a field as 'Name: value'") }
            (name, value, self.place) = (String(line.dropLast()), "", place)
            return
        }
        name = String(line[..<colon])
        value = String(line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
        // curl would remove a field that it sends itself.
        guard !value.isEmpty else { throw .usage(place, "the value is missing; '\(name);' sends the field without one") }
        self.place = place
    }
}

/// A file that an argument names: `@FILE`.
enum ArgumentFile {
    /// The greatest size of such a file, in bytes.
    private static let limit = 1 << 20

    static func lines(of argument: String, _ option: String) throws(Failure) -> [String] {
        let bytes: Data
        do { bytes = try Data(contentsOf: URL(fileURLWithPath: String(argument.dropFirst()))) } catch {
            throw Failure(ExitCode.noInput, "\(option) \(argument): the file cannot be read")
        }
        guard bytes.count <= limit, let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure(ExitCode.badData, "\(option) \(argument): the file is not a text of at most 1 MiB")
        }
        return text.split(omittingEmptySubsequences: false) { $0.isNewline }.map(String.init)
    }
}
