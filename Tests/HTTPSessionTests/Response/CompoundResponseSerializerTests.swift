import Foundation
import HTTPSession
import HTTPTypes
import Testing

@Suite struct CompoundResponseSerializerTests {
    enum Content: Equatable {
        case image(Data)
        case json(JSONValue?)
    }

    let images = HTTPResponseSerializer(validation: ResponseValidation(acceptableContentTypes: ["image/*"]))

    func compound() -> CompoundResponseSerializer<Content> {
        CompoundResponseSerializer([images.map { Content.image($0) }, JSONResponseSerializer().map { Content.json($0) }])
    }

    @Test func `a compound serializer uses the first serializer that accepts the content type`() throws {
        #expect(try compound().serialize(response("{}", type: "application/json")) == .json([:]))
        #expect(try compound().serialize(response("png", type: "image/png")) == .image(Data("png".utf8)))
    }

    @Test func `if no serializer succeeds, the last one's error is the underlying error`() {
        let error = HTTPSessionError.thrown { try compound().serialize(response("a", type: "text/html")) }
        #expect(error?.code == .cannotDecodeContent)
        #expect(error?.reason == "none of 2 serializers decodes the response")
        #expect((error?.underlying as? HTTPSessionError)?.reason == "unacceptable content type: text/html")
        #expect(error?.context.responseBody == Data("a".utf8))
    }

    @Test func `a compound serializer reports an unacceptable status once`() {
        let error = HTTPSessionError.thrown {
            try compound().serialize(response("{}", type: "application/json", status: .notFound))
        }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.underlying == nil)
    }

    @Test func `a compound serializer without serializers is an error`() {
        let error = HTTPSessionError.thrown { try CompoundResponseSerializer<Int>([]).serialize(response("")) }
        #expect(error?.code == .cannotDecodeContent)
    }

    @Test func `a copy of a compound serializer is independent of the original`() {
        let original = compound()
        var copy = original
        copy.serializers.removeLast()
        #expect(original.serializers.count == 2)
    }
}
