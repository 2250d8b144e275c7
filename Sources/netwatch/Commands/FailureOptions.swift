import ArgumentParser
import Console
import Records

/// The options that make a degraded target count as failed.
struct FailureOptions: ParsableArguments {
    @Flag(help: "A degraded target counts as failed.")
    var strict = false

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A target with one of these causes counts as failed, as in certificate-expiring,loss.", valueName: "codes"))
    var failOn: [String] = []

    /// - Throws: ``Failure`` with code 64 for a code that no cause has.
    func rule() throws(Failure) -> FailureRule {
        var rule = FailureRule()
        rule.isStrict = strict
        for list in failOn {
            do { try rule.add(list) } catch { throw .usage("--fail-on \(list.isEmpty ? "''" : list)", error.description) }
        }
        return rule
    }
}
