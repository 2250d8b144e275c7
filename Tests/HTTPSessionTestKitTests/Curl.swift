import NetworkLab

/// curl(1), a client that was not written here.
struct Curl {
    /// Runs curl. - Returns: its standard output and its exit code.
    func run(_ arguments: [String]) throws -> (output: String, code: Int32) {
        let environment: [String: String?] = ["http_proxy": nil, "https_proxy": nil, "all_proxy": nil, "no_proxy": nil]
        let program = try Program(
            ["curl", "--disable", "--silent", "--max-time", "60", "--noproxy", ""] + arguments, environment: environment,
            output: .file)
        let code = try program.wait(within: .seconds(120))
        return (program.output, code)
    }
}
