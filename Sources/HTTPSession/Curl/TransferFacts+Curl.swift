internal import CCurl

extension EasyHandle {
    /// The measurements of libcurl (curl_easy_getinfo(3)). The time of a phase that did not happen is 0 in libcurl, and `nil` here.
    func facts() -> TransferFacts {
        func phase(_ info: CURLINFO) -> Int64? {
            let microseconds = offset(info)
            return microseconds > 0 ? microseconds * 1_000 : nil
        }
        var facts = TransferFacts()
        facts.reusedConnection = long(CURLINFO_NUM_CONNECTS) == 0
        if !facts.reusedConnection {
            facts.nameLookup = phase(CURLINFO_NAMELOOKUP_TIME_T)
            facts.connect = phase(CURLINFO_CONNECT_TIME_T)
            facts.secureConnect = phase(CURLINFO_APPCONNECT_TIME_T)
        }
        facts.preTransfer = phase(CURLINFO_PRETRANSFER_TIME_T)
        if CurlLibrary.hasPostTransferTime, let sent = offset(number: CurlLibrary.postTransferTimeInfo), sent > 0 {
            facts.postTransfer = sent * 1_000
        }
        facts.firstByte = phase(CURLINFO_STARTTRANSFER_TIME_T)
        facts.total = offset(CURLINFO_TOTAL_TIME_T) * 1_000
        facts.networkProtocol =
            switch long(CURLINFO_HTTP_VERSION) {
            case Int(CURL_HTTP_VERSION_1_0): "http/1.0"
            case Int(CURL_HTTP_VERSION_1_1): "http/1.1"
            case Int(CURL_HTTP_VERSION_2_0): "h2"
            case Int(CURL_HTTP_VERSION_3): "h3"
            default: nil
            }
        facts.remoteAddress = string(CURLINFO_PRIMARY_IP)
        facts.localAddress = string(CURLINFO_LOCAL_IP)
        let (remotePort, localPort) = (long(CURLINFO_PRIMARY_PORT), long(CURLINFO_LOCAL_PORT))
        facts.remotePort = remotePort > 0 ? remotePort : nil
        facts.localPort = localPort > 0 ? localPort : nil
        facts.usedProxy = long(CURLINFO_HTTP_CONNECTCODE) != 0
        facts.requestBytes = Int64(long(CURLINFO_REQUEST_SIZE))
        facts.requestBodyBytes = offset(CURLINFO_SIZE_UPLOAD_T)
        facts.responseHeaderBytes = Int64(long(CURLINFO_HEADER_SIZE))
        facts.responseBodyBytes = offset(CURLINFO_SIZE_DOWNLOAD_T)
        return facts
    }
}
