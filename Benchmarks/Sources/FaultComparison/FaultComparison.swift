import Foundation

/// The same faults for every downloader, as the table of docs/compared.md. It takes the folder of the built products.
@main struct FaultComparison {
    static func main() async throws {
        guard CommandLine.arguments.count == 2 else {
            FileHandle.standardError.write(Data("FaultComparison PRODUCTS: run it as scripts/bench faults\n".utf8))
            exit(64)
        }
        let clients = Client.all(products: CommandLine.arguments[1])
        for client in clients where !FileManager.default.isExecutableFile(atPath: client.program) {
            FileHandle.standardError.write(Data("faults: no \(client.program)\n".utf8))
            exit(69)
        }
        print("| what happens | \(clients.map(\.name).joined(separator: " | ")) |")
        print("|---|\(String(repeating: "---|", count: clients.count))")
        for fault in Fault.all {
            let cells = try await withThrowingTaskGroup(of: (Int, String).self) { group in
                for (place, client) in clients.enumerated() {
                    group.addTask {
                        let (outcome, share) = try await client.meets(fault)
                        return (place, "\(outcome.rawValue) \(String(format: "%.2f", share))")
                    }
                }
                var cells: [Int: String] = [:]
                for try await (place, cell) in group { cells[place] = cell }
                return cells
            }
            print("| \(fault.name) | \(clients.indices.map { cells[$0] ?? "" }.joined(separator: " | ")) |")
            fflush(nil)
        }
    }
}
