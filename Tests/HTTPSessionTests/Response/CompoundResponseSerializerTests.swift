import Expectations
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
        try expectEqual(compound().serialize(response("{}", type: "application/json")), .json([:]))
        try expectEqual(compound().serialize(response("png", type: "image/png")), .image(Data("png".utf8)))
    }

    @Test func `if no serializer succeeds, the last one's error is the underlying error`() {
        let error = HTTPSessionError.thrown { try compound().serialize(response("a", type: "text/html")) }
        expectEqual(error?.code, .cannotDecodeContent)
        expectEqual(error?.reason, "none of 2 serializers decodes the response")
        expectEqual((error?.underlying as? HTTPSessionError)?.reason, "unacceptable content type: text/html")
        expectEqual(error?.context.responseBody, Data("a".utf8))
    }

    @Test func `a compound serializer reports an unacceptable status once`() {
        let error = HTTPSessionError.thrown {
            try compound().serialize(response("{}", type: "application/json", status: .notFound))
        }
        expectEqual(error?.code, .unacceptableStatus)
        expectNil(error?.underlying)
    }

    @Test func `a compound serializer without serializers is an error`() {
        let error = HTTPSessionError.thrown { try CompoundResponseSerializer<Int>([]).serialize(response("")) }
        expectEqual(error?.code, .cannotDecodeContent)
    }

    @Test func `a copy of a compound serializer is independent of the original`() {
        let original = compound()
        var copy = original
        copy.serializers.removeLast()
        expectEqual(original.serializers.count, 2)
    }
}
