import ArgumentParser
import Console

/// `netwatch schema`: what programs may rely on, for programs.
struct SchemaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Print the JSON Schema of every record and document."
    )

    @Flag(help: "Accepted everywhere; a schema is JSON in any case.")
    var json = false

    func run() throws {
        let output = try StandardOutput()
        output.append(line: Schema.encode())
        try output.flush()
    }
}
