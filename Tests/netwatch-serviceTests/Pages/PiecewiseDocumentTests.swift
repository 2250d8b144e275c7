import Expectations
import Foundation
import Testing

@testable import netwatch_service

@Suite struct PiecewiseDocumentTests {
    private func pieces(_ document: some PiecewiseDocument) -> Int {
        var (document, count) = (document, 1)
        while document.renderPiece() == nil { count += 1 }
        return count
    }

    @Test func `the status document and the page of a thousand targets have many pieces`() throws {
        let board = Site.board(targets: 1_000)
        var query = BoardQuery()
        query.limit = 1_000
        let document = BoardDocument(board: board, query: query).pieces
        #expect(pieces(document) >= 20)
        let json = try #require(try JSONSerialization.jsonObject(with: Data(document.rendered())) as? [String: Any])
        let targets = try #require(json["targets"] as? [[String: Any]])
        expectEqual(targets.compactMap { $0["seq"] as? Int }, Array(0..<1_000))
        expectEqual(targets.last?["target"] as? String, "a1000:80")
        let page = StatusPage.pieces(board: board, query: query, now: PageSamples.moment())
        #expect(pieces(page) >= 20)
        expectEqual(PageSamples.text(page.rendered()).components(separatedBy: "<tr data-k=").count, 1_001)
    }

    @Test func `a part has at most 50 elements, and no element is left out`() {
        for count in [0, 1, 49, 50, 51, 120] {
            let parts = PartedDocument<[Int]>.parts(Array(0..<count)) { elements, content in
                #expect(elements.count <= 50)
                content += elements
            }
            let document = PartedDocument([], parts) { numbers in numbers.map { UInt8($0) } }
            expectEqual(document.rendered(), (0..<count).map { UInt8($0) })
        }
    }
}
