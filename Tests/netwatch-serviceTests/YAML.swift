@testable import netwatch_service

/// Documents in YAML for tests.
enum YAML {
    static func tree(_ text: String, file: String = "f.yaml") throws -> ConfigurationNode {
        var problems: [ConfigurationProblem] = []
        let tree = try Self.tree(text, &problems, file)
        if let problem = problems.first { throw problem }
        return tree
    }

    private static func tree(
        _ text: String, _ problems: inout [ConfigurationProblem], _ file: String = "f.yaml"
    ) throws -> ConfigurationNode {
        try YAMLDocument.parse(text, &problems) { .file(file, line: $0, column: $1) }
    }

    /// Reads a configuration without errors.
    static func configuration(_ text: String) throws -> Configuration {
        let (configuration, problems) = read(text)
        guard problems.isEmpty else { throw Problems(description: problems.joined(separator: "\n")) }
        return configuration
    }

    /// Returns the errors of a configuration, a line each.
    static func problems(_ text: String) -> [String] { read(text).problems }

    private static func read(_ text: String) -> (Configuration, problems: [String]) {
        do {
            var problems: [ConfigurationProblem] = []
            let tree = try Self.tree(text, &problems)
            var reader = ConfigurationReader(problems: problems)
            let configuration = Configuration(tree, &reader)
            return (configuration, reader.problems.map(\.description))
        } catch { return (Configuration(), ["\(error)"]) }
    }

    struct Problems: Error, CustomStringConvertible {
        let description: String
    }
}
