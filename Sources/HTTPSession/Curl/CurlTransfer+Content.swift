internal import CCurl
internal import ContentCodings

/// The decoding of the response's content. libcurl's decoders do not say whether their data have ended, so that a cut response would be complete.
extension CurlTransfer {
    /// Receives bytes of the body that may be coded.
    func receiveContent(_ bytes: UnsafeRawBufferPointer) -> Int {
        if !hasReadCodings {
            hasReadCodings = true
            let codings = ending.codings
            if !codings.isEmpty {
                do throws(ContentDecoder.Failure) {
                    decoder = try ContentDecoder(codings)
                } catch {
                    return refuse(content: error)
                }
            }
        }
        guard let decoder else { return deliver(bytes) }
        var answer = bytes.count
        do throws(ContentDecoder.Failure) {
            _ = try decoder.decode(bytes) { piece in
                let result = deliver(piece)
                guard result != piece.count else { return true }
                answer = result
                return false
            }
        } catch {
            return refuse(content: error)
        }
        if answer == bytes.count { checkForCompleteResponse() }
        return answer
    }

    /// Throws an error if the content ends within its coded data.
    func checkContent() throws(HTTPSessionError) {
        guard let decoder, !decoder.isComplete else { return }
        // The connection may have been lost, as nothing else says where the body ends.
        guard !ending.isUntilClose else {
            throw HTTPSessionError(.connectionLost, "the connection ended within the compressed data of the response")
        }
        throw HTTPSessionError(.cannotDecodeContent, "the response cannot be decompressed: it ends within its compressed data")
    }

    private func refuse(content failure: ContentDecoder.Failure) -> Int {
        let reason =
            switch failure {
            case .unsupported(let name): "its coding is unknown: \(name)"
            case .damaged: "its compressed data are damaged"
            case .surplus: "bytes follow the end of its compressed data"
            }
        refuse(with: HTTPSessionError(.cannotDecodeContent, "the response cannot be decompressed: \(reason)"))
        return 0
    }
}
