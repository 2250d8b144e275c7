import ArgumentParser
import Console
import Records

/// `netwatch schema`: the guaranteed format of the output, for programs.
struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of every record and document."
    )

    @Flag(help: "Accepted for consistency; a schema is always JSON.")
    var json = false

    func run() throws {
        let output = try StandardOutput()
        output.append(line: Schema.encode())
        try output.flush()
    }
}
