/// What of a load goes into the durable store: the original's bytes, the value that its ``ResourceTransform`` made of them,
/// encoded, or both.
///
/// What is in the store is used under every policy. A transform that has no encoder can't be kept, so its original is, whatever
/// the policy says; so it is with loads of plain bytes, and into files.
public enum StoragePolicy: String, Hashable, Sendable, CaseIterable {
  /// The originals alone. Every transform is made of them again, without the network.
  case originals
  /// The encoded values alone: they take the least room. Another transform of the same resource is loaded anew.
  case variants
  /// Both.
  case all
  /// Both where that saves work: the original always, and the encoded value beside it when it takes fewer bytes.
  ///
  /// A store that runs out of room lets go of what is used least. Where the same variant is shown again and again, that is the
  /// original: what stays is what is used.
  case automatic
}
