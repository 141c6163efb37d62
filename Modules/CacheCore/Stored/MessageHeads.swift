internal import HTTPTypes

/// Request, response and trailers of a stored answer.
struct MessageHeads: Hashable, Sendable {
  var request: HTTPRequest
  var response: HTTPResponse
  var trailers: HTTPFields?
}

/// Heads behind one reference, so that whoever changes a time does not copy them.
final class MessageHeadsBox: Sendable {
  let heads: MessageHeads

  init(_ heads: MessageHeads) { self.heads = heads }
}
