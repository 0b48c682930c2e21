# Jobs, one a line, that show where large batches break: SGD, SGDW and LARS by the linear rule at global batches of 256 to 8,192, by accumulation, so that batch
# norm is the same in all. 4 epochs on $D, 100 classes of drawn characters: train-prep's shards of every tenth class of `make_imagenet --scale 2 --side 64`.
# doc/accuracy.md has the results.
#   jq -nc --arg D DATA -f tests/rehearsal/large_batches.jq | while read -r job; do trainctl submit - <<<"$job"; done
(256, 1024, 4096, 8192) as $batch | ("sgd", "sgdw", "lars") as $optimizer |
(if $optimizer == "lars" then {base: 0.2, decay: "poly", power: 2} else {base: 0.1, decay: "cosine"} end) as $lr |
{sgd: {weight_decay: 1e-4}, sgdw: {weight_decay: (5e-4 * $batch / 2048)}, lars: {weight_decay: 1e-4, lars_eta: 0.01}} as $own |
{
  name: "\($optimizer) \($batch)", seed: 1, tags: ["large batches"],
  model: {arch: "resnet18", width: 0.25, classes: 100, image_size: 48},
  data: {train: ($D + "/train"), eval: ($D + "/validation"), preprocess: "torchvision", random_crop: false},
  cluster: {workers_per_node: 1, threads_per_worker: 1},
  batch_per_worker: 128, accumulate_steps: ($batch / 128), epochs: 4,
  lr: ($lr + {base_batch: 256, scaling: "linear", start: 0, warmup_epochs: 1, end: 0}),
  optimizer: ({name: $optimizer, momentum: 0.9, label_smoothing: 0.1} + $own[$optimizer]),
  eval: {every_epochs: 4, image_size: 48, batch: 100}, checkpoint: {disable: true}
}
