#include "common/job/job_options.h"

#include <stdio.h>
#include <string.h>

#include "common/net/arch.h"
#include "common/text.h"
#include "common/xalloc.h"

/* Enums are stored through a pointer to int; gcc and clang give both the same size. */
_Static_assert(sizeof(enum job_mode) == sizeof(int), "enums are ints");

#define LIST(...)                                                                                  \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define AT(field)           .offset = offsetof(struct job_spec, field)
#define FLAG(field)         .flag = offsetof(struct job_spec, field)
#define OR_NULL             .nullable = true
#define DEFAULT(json)       .fallback = json
#define RANGE(low, high)    .min = low, .max = high
#define ABOVE               .above_min = true
#define APART               .apart = true
#define FROM_DATA           .from_data = true
#define BELOW               .below_max = true
#define LENGTH(high)        .min = 1, .max = high
#define TEXT(kind)          .text = JOB_TEXT_##kind
#define NAMES(kind, length) .names = JOB_TEXT_##kind, .name_max = length
#define UNIQUE              .unique = true
#define UNIT(name)          .unit = name
#define HELP(words)         .help = words
#define WORDS(...)          .choices = LIST(__VA_ARGS__)
#define CHOICE(...)         JOB_OPTION_CHOICE, WORDS(__VA_ARGS__)

/* clang-format off */
static const struct job_option options[] = {
    {"/name", JOB_OPTION_STRING, OR_NULL, APART, AT(name), DEFAULT("null"), TEXT(TITLE), LENGTH(200),
     HELP("Name of the job in lists and charts. This, tags and note can be changed at any time (trainctl tag, note, rename).")},
    {"/tags", JOB_OPTION_STRINGS, APART, AT(tags), FLAG(tag_count), DEFAULT("[]"), TEXT(TAG), LENGTH(64), .most = JOB_TAGS_MAX, UNIQUE,
     HELP("Words by which the job is found and grouped, as in [\"baseline\", \"paper:table-2\"].")},
    {"/note", JOB_OPTION_STRING, OR_NULL, APART, AT(note), DEFAULT("null"), TEXT(NOTE), LENGTH(JOB_NOTE_MAX),
     HELP("What people should know of the job: plain text, which may have several lines.")},
    {"/preset", JOB_OPTION_STRING, OR_NULL, APART, AT(preset), DEFAULT("null"), TEXT(FILE), LENGTH(200),
     HELP("A published recipe that supplies the values the document does not state (see trainctl presets).")},
    {"/reproduces", JOB_OPTION_INTEGER, OR_NULL, APART, AT(reproduces), FLAG(has_reproduces), DEFAULT("null"), RANGE(1, 1e12),
     HELP("Id of the job that this one reproduces bit for bit; set by trainctl reproduce. The daemon compares the two at the end. No effect on the run itself.")},
    {"/mode", CHOICE("train", "eval"), AT(mode), DEFAULT("\"train\""),
     HELP("train, or eval: evaluate the weights of model.init on data.eval without training.")},

    {"/model/arch", JOB_OPTION_ARCH, AT(model.arch), DEFAULT("\"resnet50\""),
     HELP("The network, by its torchvision name. resnet50 is v1.5 (stride in the 3x3 convolution), resnet50v1 the network of the paper. "
          "cnn is the small network of TensorFlow's MNIST example, for grey images: two 5x5 convolutions with 32 and 64 filters, each "
          "followed by 2x2 max-pooling, then 1024 hidden units and dropout. cnn changes these defaults: model.classes 10, "
          "model.image_size 28, model.dropout 0.4, data.preprocess whole, data.augment false.")},
    {"/model/classes", JOB_OPTION_INTEGER, AT(model.classes), FROM_DATA, DEFAULT("1000"), RANGE(2, 100000), UNIT("classes"),
     HELP("Number of classes; labels are 0 to classes - 1.")},
    {"/model/image_size", JOB_OPTION_SIZES, AT(model.image_size), FLAG(model.sizes), FROM_DATA, DEFAULT("224"), RANGE(28, 1024), UNIT("pixels"),
     HELP("Width and height of the network's input. All networks except cnn need at least 32. The size can also change with the epoch, "
          "which saves computation: [[0, 160], [16, 192]] trains at 160 pixels, and at 192 from epoch 16; {\"from\": 160, \"to\": 192, "
          "\"ramp\": [6, 17], \"multiple\": 32} increases the size linearly between two epochs, rounded to multiples. Evaluation uses "
          "the last size. cnn needs a single number.")},
    {"/model/width", JOB_OPTION_NUMBER, AT(model.width), DEFAULT("1"), RANGE(0.0625, 8),
     HELP("Factor for the number of channels: of the inner channels of each residual block, like torchvision's width_per_group (resnet50 "
          "with width 2 is wide_resnet50_2), or of the filters and hidden units of cnn. The results are rounded to multiples of 8; a "
          "group of a ResNeXt must have 4, 8, 16, ... channels.")},
    {"/model/dropout", JOB_OPTION_NUMBER, AT(model.dropout), DEFAULT("0"), RANGE(0, 1), BELOW,
     HELP("Fraction of the classifier's inputs set to 0 in training, drawn for each image; the others are divided by 1 - dropout. "
          "Evaluation uses no dropout.")},
    {"/model/stem", CHOICE("imagenet", "small"), AT(model.stem), DEFAULT("\"imagenet\""),
     HELP("The first layers. imagenet: a 7x7 convolution with stride 2, and a pooling layer; small: a 3x3 convolution without pooling, "
          "for small images.")},
    {"/model/init", JOB_OPTION_STRING, OR_NULL, AT(model.init), DEFAULT("null"), TEXT(PATH), LENGTH(4095),
     HELP("Initial weights: a safetensors file (F32, F16 or BF16) with torchvision's names, the folder of a checkpoint, or a run "
          "directory, whose best checkpoint (checkpoint.keep_best), otherwise the newest complete one, is used; null: random weights. If the file has a classifier for another number "
          "of classes, or none, training starts with a random one, and says so. Prefixes \"module.\" and \"_orig_mod.\" of all names "
          "are ignored.")},
    {"/model/freeze", JOB_OPTION_STRINGS, AT(model.freeze), FLAG(model.freeze_count), DEFAULT("[]"), TEXT(TAG), LENGTH(16), .most = 8, UNIQUE,
     WORDS("backbone"),
     HELP("Parts of the network that are not trained, from the first on: of a ResNet conv1 (with bn1), layer1, layer2, layer3, layer4; of cnn "
          "conv1, conv2, fc1. \"backbone\": all but the classifier. Their batch norm uses the running statistics and leaves them "
          "unchanged. Steps take less time and memory, as there is no backward pass through these parts.")},
    {"/model/bn_decay", JOB_OPTION_NUMBER, AT(model.bn_decay), DEFAULT("0.95"), RANGE(0, 1), BELOW,
     HELP("Decay of batch norm's running statistics per step (1 - PyTorch's momentum).")},
    {"/model/blur_pool", JOB_OPTION_BOOLEAN, AT(model.blur_pool), DEFAULT("false"),
     HELP("Apply a low-pass filter, [1 2 1] x [1 2 1] / 16 with zeros around the image, before each convolution with stride 2 and at least "
          "16 input channels, and to the maxima of the pooling layer, before they are reduced to every second one (Zhang 2019; Composer's "
          "BlurPool). It adds no weights. Checkpoints state it, and weights of the other kind are refused.")},
    {"/model/bn_init", CHOICE("ones", "uniform"), AT(model.bn_init), DEFAULT("\"ones\""),
     HELP("Initial weights of batch norm: 1, or random numbers between 0 and 1 (as MosaicML's ResNet recipes; they set "
          "model.zero_init_residual to false, which otherwise decides for the last batch norm of each block).")},
    {"/model/zero_init_residual", JOB_OPTION_BOOLEAN, AT(model.zero_init_residual), DEFAULT("true"),
     HELP("Initialise the last batch norm of each block with 0, so that each block starts as the identity.")},
    {"/model/winograd", JOB_OPTION_BOOLEAN, AT(model.winograd), DEFAULT("true"),
     HELP("Compute 3x3 convolutions with stride 1 by Winograd's algorithm if a short measurement shows that it is faster. It increases "
          "rounding errors to about 4e-7 (root mean square) and 3e-6 (maximum) of the largest output; without it they are a third of "
          "that.")},

    {"/model/winograd_tiles", JOB_OPTION_STRING, OR_NULL, AT(model.winograd_tiles), DEFAULT("null"), TEXT(TILES), LENGTH(4096),
     HELP("The choice of model.winograd, instead of a measurement: size x channels in - channels out, and the tiles of forward, input gradient and weight gradient (0: none), in the format of provenance.json, key winograd. It must name all 3x3 convolutions of the network that take the algorithm. Without effect if model.winograd is false. null: measured.")},

    {"/model/gemm", CHOICE("auto", "openblas", "own"), AT(model.gemm), DEFAULT("\"auto\""),
     HELP("Implementation of the matrix products in convolutions. openblas: im2col and cblas_sgemm for all convolutions with one group, "
          "without Winograd. own: the engine's kernels. auto: the faster one by measurements on each kind of processor, which is own "
          "with AVX2 or AVX-512 and openblas otherwise. The classifier always uses OpenBLAS, grouped convolutions always the engine's "
          "kernels.")},

    {"/data/train", JOB_OPTION_STRING, OR_NULL, AT(data.train), DEFAULT("null"), TEXT(PATH), LENGTH(4095),
     HELP("Training images: a folder of TFRecord shards, a folder of class folders with JPEG and PNG files, or \"synthetic\" (random "
          "images). Their layout is described in train-job(5), DATA. Required unless mode is eval.")},
    {"/data/eval", JOB_OPTION_STRING, OR_NULL, AT(data.eval), FROM_DATA, DEFAULT("null"), TEXT(PATH), LENGTH(4095),
     HELP("Evaluation images, in the same formats as data.train and with the same classes; null: no evaluation.")},
    {"/data/train_images", JOB_OPTION_INTEGER, OR_NULL, AT(data.train_images), FLAG(data.has_train_images),
     DEFAULT("null"), RANGE(1, 1e12), UNIT("images"),
     HELP("Number of training images; null: count them. If it is smaller than the data set, each epoch uses this many images of a new "
          "shuffle of the whole set, so that all images are used over time (without data.shuffle: always the first ones). Synthetic data "
          "has 1281167 images by default, as ImageNet.")},
    {"/data/eval_images", JOB_OPTION_INTEGER, OR_NULL, AT(data.eval_images), FLAG(data.has_eval_images),
     DEFAULT("null"), RANGE(1, 1e12), UNIT("images"),
     HELP("Number of evaluation images; null: count them. If it is smaller than the data set, the first ones are used. If this and "
          "data.train_images are set, traind does not read the data; only the nodes need it.")},
    {"/data/preprocess", CHOICE("tpu", "mlperf", "torchvision", "whole"), AT(data.preprocess), FROM_DATA, DEFAULT("\"tpu\""),
     HELP("Crop, resize and normalisation. Train and evaluate with the same choice; weights published by torchvision need torchvision. "
          "whole uses the whole image without cropping, resized only if its size is not model.image_size, with values from 0 to 1.")},
    {"/data/augment", JOB_OPTION_BOOLEAN, AT(data.augment), DEFAULT("true"),
     HELP("Use random resized crops and flips in training; false: process training images like evaluation images. data.mixup is "
          "independent of this key.")},
    {"/data/random_crop", JOB_OPTION_BOOLEAN, AT(data.random_crop), DEFAULT("true"),
     HELP("Use random crops if data.augment is true; false: crop as in evaluation. data.preprocess whole never crops.")},
    {"/data/random_flip", JOB_OPTION_BOOLEAN, AT(data.random_flip), DEFAULT("true"),
     HELP("Mirror half of the training images if data.augment is true.")},
    {"/data/flip", CHOICE("random", "alternating"), AT(data.flip), DEFAULT("\"random\""),
     HELP("Which images data.random_flip mirrors. random: half of them, drawn for each epoch. alternating: half of them, drawn for the "
          "first epoch, and in each later epoch those that were not mirrored in the epoch before (Jordan 2024, arXiv:2404.00498).")},
    {"/data/auto_augment", CHOICE("none", "trivial", "randaugment"), AT(data.auto_augment), DEFAULT("\"none\""),
     HELP("Distort each training image after crop and mirror: trivial: by one random operation of random strength (TrivialAugment); "
          "randaugment: by data.auto_augment_ops operations of strength data.auto_augment_magnitude (RandAugment). Operations and strengths "
          "are torchvision's.")},
    {"/data/auto_augment_ops", JOB_OPTION_INTEGER, AT(data.auto_augment_ops), DEFAULT("2"), RANGE(1, 14),
     HELP("Number of operations of randaugment, in succession.")},
    {"/data/auto_augment_magnitude", JOB_OPTION_INTEGER, AT(data.auto_augment_magnitude), DEFAULT("9"), RANGE(0, 30),
     HELP("Strength of the operations of randaugment.")},
    {"/data/color_jitter", JOB_OPTION_NUMBER, AT(data.color_jitter), DEFAULT("0"), RANGE(0, 1), UNIT("fraction"),
     HELP("Change brightness, then contrast, then saturation of training images, each by a random factor between 1 - this and 1 + this; 0: off.")},
    {"/data/hue_jitter", JOB_OPTION_NUMBER, AT(data.hue_jitter), DEFAULT("0"), RANGE(0, 0.5), UNIT("fraction"),
     HELP("Turn the hue of training images by a random part of its circle, at most this in either direction; 0: off. Grey images have none.")},
    {"/data/random_erasing", JOB_OPTION_NUMBER, AT(data.random_erasing), DEFAULT("0"), RANGE(0, 1), UNIT("probability"),
     HELP("Probability that a rectangle of 2 to 33 % of a training image is replaced by the mean colour (RandomErasing).")},
    {"/data/shuffle", JOB_OPTION_BOOLEAN, AT(data.shuffle), DEFAULT("true"),
     HELP("Shuffle all training images in each epoch; false: use the order of the files.")},
    {"/data/locality", CHOICE("global", "node"), AT(data.locality), DEFAULT("\"global\""),
     HELP("global: every node can read all training data. node: each node has its own part, for data copied to local disks: node i of n "
          "trains on the shards s with s % n = i, shuffled among themselves, and needs no others. The plan shows the consequences. Every "
          "node reads all of data.eval.")},
    {"/data/mixup", JOB_OPTION_NUMBER, AT(data.mixup), DEFAULT("0"), RANGE(0, 10),
     HELP("Alpha of MixUp, which mixes pairs of images with a weight from Beta(alpha, alpha); 0: off. Pairs are formed within the batch of a worker, so they depend on the number of workers.")},
    {"/data/cutmix", JOB_OPTION_NUMBER, AT(data.cutmix), DEFAULT("0"), RANGE(0, 10),
     HELP("Alpha of CutMix, which replaces a rectangle of each image by that of another one; its share is drawn from Beta(alpha, alpha), and the label is mixed by it; 0: off. Pairs are formed as for data.mixup; with both, a step draws one of them with equal chance.")},
    {"/data/prefetch_threads", JOB_OPTION_INTEGER, APART, AT(data.prefetch_threads), DEFAULT("0"), RANGE(0, 256), UNIT("threads"),
     HELP("Threads per worker that decode images ahead of the engine; 0: start with one and add more while the engine waits for images, "
          "up to the number of its compute threads.")},
    {"/data/prefetch_batches", JOB_OPTION_INTEGER, APART, AT(data.prefetch_batches), DEFAULT("3"), RANGE(1, 64), UNIT("batches"),
     HELP("Training batches decoded in advance. More of them bridge longer pauses of a shared disk, and take more memory.")},

    {"/cluster/launcher", CHOICE("local", "slurm"), AT(cluster.launcher), DEFAULT("\"local\""),
     HELP("What starts the workers: local (mpirun, from traind's machine) or slurm.")},
    {"/cluster/nodes", JOB_OPTION_INTEGER, AT(cluster.nodes), DEFAULT("1"), RANGE(1, 100000), UNIT("nodes"),
     HELP("Number of machines. With launcher local, more than one needs cluster.hosts. A plan can be made for any number.")},
    {"/cluster/workers_per_node", JOB_OPTION_INTEGER, AT(cluster.workers_per_node), DEFAULT("2"), RANGE(0, 1024), UNIT("workers"),
     HELP("Workers (training processes, each one MPI rank) per node. 0: the plan chooses workers and threads for the cores of a node by "
          "speed, memory and the batch that batch norm needs per worker, explains the choice, and stores it in the job. Set global_batch "
          "with it; otherwise each worker takes batch_per_worker images, and the number of workers changes the global batch.")},
    {"/cluster/threads_per_worker", JOB_OPTION_INTEGER, AT(cluster.threads_per_worker), DEFAULT("0"), RANGE(0, 1024), UNIT("threads"),
     HELP("Compute threads per worker; 0: the cores of a node (with cluster.smt: its hardware threads) divided by the workers.")},
    {"/cluster/bind", CHOICE("auto", "core", "socket", "numa", "none"), AT(cluster.bind), DEFAULT("\"auto\""),
     HELP("How workers are spread over a node before each is bound to its own threads_per_worker cores: over NUMA domains, over sockets, "
          "or core after core. auto: NUMA domains if each worker fits into one, otherwise sockets, otherwise cores; on traind's machine, "
          "a job that uses at most half of the slots is not bound by mpirun, which would bind the next job to the same cores; its "
          "workers then bind themselves. none: no binding. The event run_start reports the binding of each rank; a warning says if it "
          "differs from the request.")},
    {"/cluster/smt", JOB_OPTION_BOOLEAN, AT(cluster.smt), DEFAULT("false"),
     HELP("Count hardware threads instead of cores, in threads_per_worker, in the slots of cluster.hosts and in the binding. Dense "
          "arithmetic gains little from a second thread per core.")},
    {"/cluster/hosts", JOB_OPTION_STRINGS, OR_NULL, AT(cluster.hosts), FLAG(cluster.host_count), DEFAULT("null"),
     TEXT(HOST), LENGTH(4096), .most = JOB_HOSTS_MAX,
     HELP("Host names, each \"name\" or \"name:slots\" (the cores that jobs may use there), or many in Slurm's notation: \"n[1-256]\", "
          "\"gpu[01-04,07]-ib:16\". Plans and stored jobs list them one by one, at most 4096. The job uses the first cluster.nodes of them "
          "that answer; the others are spares. null: this machine, or the choice of the launcher.")},
    {"/cluster/interface", JOB_OPTION_STRING, OR_NULL, AT(cluster.interface), DEFAULT("null"), TEXT(INTERFACE), LENGTH(64),
     HELP("Network interface (eth0) or subnet (10.0.0.0/24) for MPI between hosts; null: chosen by MPI.")},
    {"/cluster/ssh_port", JOB_OPTION_INTEGER, OR_NULL, AT(cluster.ssh_port), FLAG(cluster.has_ssh_port), DEFAULT("null"), RANGE(1, 65535),
     HELP("Port of sshd on all of cluster.hosts, passed with -p to the launch_agent of traind.conf; null: the port in the configuration "
          "of ssh.")},
    {"/cluster/partition", JOB_OPTION_STRING, OR_NULL, AT(cluster.partition), DEFAULT("null"), TEXT(NAMES), LENGTH(255),
     HELP("Slurm partition; null: Slurm's default.")},
    {"/cluster/account", JOB_OPTION_STRING, OR_NULL, APART, AT(cluster.account), DEFAULT("null"), TEXT(NAMES), LENGTH(255),
     HELP("Slurm account to charge; null: slurm.account of traind.conf, otherwise Slurm's default.")},
    {"/cluster/constraint", JOB_OPTION_STRING, OR_NULL, AT(cluster.constraint), DEFAULT("null"), TEXT(FEATURES), LENGTH(255),
     HELP("Required features of the nodes, in the syntax of sbatch --constraint; null: none.")},
    {"/cluster/time_limit", JOB_OPTION_STRING, OR_NULL, APART, AT(cluster.time_limit), DEFAULT("null"), TEXT(TIME), LENGTH(64),
     HELP("Time limit of an attempt, in Slurm's formats (minutes, minutes:seconds, hours:minutes:seconds, days-hours...). At the limit "
          "the run writes a checkpoint and stops; a Slurm job continues in another allocation until it is finished. null: no limit, or "
          "that of the partition.")},
    {"/cluster/mpi_prefix", JOB_OPTION_STRING, OR_NULL, AT(cluster.mpi_prefix), DEFAULT("null"), TEXT(PREFIX), LENGTH(1024),
     HELP("Installation folder of Open MPI on the nodes, for mpirun --prefix; the workers use its orted and its libraries. Must be one "
          "of mpi_prefixes of traind.conf. null: use the PATH and the linker configuration of the nodes.")},
    {"/cluster/mpi_args", JOB_OPTION_STRINGS, AT(cluster.mpi_args), FLAG(cluster.mpi_arg_count), DEFAULT("[]"),
     TEXT(ARGUMENT), LENGTH(1024), .most = JOB_MPI_ARGS_MAX,
     HELP("Additional mpirun arguments, one per string. Characters that are special to a shell are refused, because Open MPI passes some "
          "arguments to a shell on other hosts. Only callers with the admin role may use all arguments (see traind(8)).")},
    {"/cluster/env", JOB_OPTION_MAP, AT(cluster.env), FLAG(cluster.env_count), DEFAULT("{}"),
     NAMES(VARIABLE, 128), TEXT(SETTING), LENGTH(1024), .most = JOB_ENV_MAX,
     HELP("Environment variables for all workers, as in {\"OMP_WAIT_POLICY\": \"active\"}. Names must begin with one of job_env_prefixes "
          "of traind.conf. The engine uses GNU's OpenMP library (libgomp), where OMP_WAIT_POLICY and GOMP_SPINCOUNT control how long a "
          "waiting thread spins; the KMP_ variables of Intel and LLVM have no effect. OMP_NUM_THREADS is set from "
          "cluster.threads_per_worker.")},

    {"/global_batch", JOB_OPTION_INTEGER, OR_NULL, AT(global_batch), FLAG(has_global_batch), DEFAULT("null"), RANGE(1, 1e9), UNIT("images"),
     HELP("Images per update, over all workers. It is divided evenly and determines batch_per_worker; null: nodes x workers_per_node x "
          "batch_per_worker x accumulate_steps.")},
    {"/batch_per_worker", JOB_OPTION_INTEGER, AT(batch_per_worker), DEFAULT("48"), RANGE(1, 65536), UNIT("images"),
     HELP("Images per worker and step. With accumulate_steps \"auto\" this is the maximum; otherwise omit it if global_batch is set.")},
    {"/accumulate_steps", JOB_OPTION_INTEGER, AT(accumulate_steps), DEFAULT("1"), RANGE(1, 1024), WORDS("auto"), UNIT("batches"),
     HELP("Batches whose gradients are summed before an update; increases the global batch without more memory. \"auto\": the smallest "
          "number that divides global_batch into equal batches of at most batch_per_worker. The memory of the nodes is not considered: "
          "choose batch_per_worker so that memory_bytes_per_worker of the plan fits.")},
    {"/batch_schedule", CHOICE("constant", "fill"), AT(batch_schedule), DEFAULT("\"constant\""),
     HELP("Batches in the epochs of smaller images, if model.image_size changes with the epoch. constant: batch_per_worker in all steps. "
          "fill: batch_per_worker at the last size, and for smaller images as many as take no more memory, in multiples of 8; the "
          "learning rate follows the global batch by lr.scaling, and epochs have fewer steps. The plan lists these phases.")},
    {"/epochs", JOB_OPTION_NUMBER, AT(epochs), DEFAULT("90"), RANGE(0, 10000), ABOVE, UNIT("epochs"),
     HELP("Passes over the training images; may be a fraction.")},
    {"/steps_rounding", CHOICE("floor", "exact"), AT(steps_rounding), DEFAULT("\"floor\""),
     HELP("floor: each epoch is a whole number of updates, and the images of the last partial batch are left out. exact: epochs follow "
          "each other without a gap, so that a batch can contain images of two epochs, and the run has round(epochs x images / global "
          "batch) updates.")},
    {"/steps", JOB_OPTION_INTEGER, OR_NULL, AT(steps), FLAG(has_steps), DEFAULT("null"), RANGE(1, 1e9), UNIT("steps"),
     HELP("Number of training steps, instead of epochs; null: use epochs.")},
    {"/stop_at", JOB_OPTION_NUMBER, AT(stop_at), DEFAULT("1"), RANGE(0, 1), ABOVE, UNIT("fraction"),
     HELP("Part of the steps to train: 0.25 stops after a quarter of them, with the learning rates of the whole run. Another job with the key continues can train the rest.")},
    {"/continues", JOB_OPTION_INTEGER, OR_NULL, AT(continues), FLAG(has_continues), DEFAULT("null"), RANGE(1, 1e12),
     HELP("Id of the job from whose newest checkpoint this one goes on, as if it were the same run: with the same model, data, seed and recipe, but for instance a larger stop_at. "
          "If that job has not ended, name it in after, too. If it has no checkpoint when this one starts, the training starts from the beginning, with a warning.")},
    {"/seed", JOB_OPTION_INTEGER, AT(seed), DEFAULT("1"), RANGE(0, 9007199254740991.0),
     HELP("Seed of all random numbers: weights, shuffle, crops. The same seed gives the same run.")},
    {"/precision", CHOICE("fp32", "bf16"), AT(precision), DEFAULT("\"fp32\""),
     HELP("Number format of activations, their gradients and the inputs of convolutions. With bf16, sums, batch norm statistics, the "
          "classifier, weights, their gradients and checkpoints remain fp32. bf16 is fast with AMX or AVX512_BF16; other processors "
          "emulate it, no faster than fp32. cnn needs fp32.")},
    {"/loss", CHOICE("cross_entropy", "bce"), AT(loss), DEFAULT("\"cross_entropy\""),
     HELP("Loss of an image: cross_entropy of the softmax, or bce, the sum over all classes of the binary cross entropy of each output's "
          "sigmoid, as in MosaicML's and timm's recipes. With bce the classifier's bias starts at -log(model.classes), so that "
          "each class begins with a probability of about 1 / model.classes. Evaluations report the same loss, without label smoothing.")},
    {"/loss_scale", JOB_OPTION_NUMBER, AT(loss_scale), DEFAULT("1"), RANGE(0, 16777216), ABOVE,
     HELP("Factor for the loss before the backward pass, removed from the gradients before they are used. Not needed, since bf16 has the "
          "range of fp32; powers of two do not change the result. Only with precision bf16.")},
    {"/class_weights", JOB_OPTION_NUMBERS, AT(class_weights), FLAG(class_weight_count), DEFAULT("[]"), RANGE(0, 1e6), .most = JOB_CLASS_WEIGHTS_MAX,
     WORDS("balanced"),
     HELP("Weights of the classes in the training loss, for data with many images of some classes and few of others: a number for each class, in the order of the class "
          "folders, or \"balanced\": images / (classes x images of the class), counted in data.train, where classes are those with images, as in scikit-learn. []: 1 for all. "
          "The loss of an image is multiplied by the weight of its class; the divisor stays the number of images, as in Keras. Label smoothing weights the part of each "
          "class by its own weight with cross_entropy, as in PyTorch, and by that of the label with bce. Evaluations are not weighted.")},

    {"/lr/base", JOB_OPTION_NUMBER, AT(lr.base), DEFAULT("0.1"), RANGE(0, 1e12), ABOVE,
     HELP("Learning rate for a global batch of lr.base_batch. The default depends on optimizer.name: 0.1 for sgd, sgdw and lars, 0.001 "
          "for adam, adamw and rmsprop, 0.01 for adagrad, 1 for adadelta.")},
    {"/lr/base_batch", JOB_OPTION_INTEGER, AT(lr.base_batch), DEFAULT("256"), RANGE(1, 1e9), UNIT("images"),
     HELP("The global batch that lr.base is for.")},
    {"/lr/scaling", CHOICE("linear", "sqrt", "none"), AT(lr.scaling), DEFAULT("\"linear\""),
     HELP("How the peak learning rate grows with the global batch B: linear (B / base_batch), sqrt (its square root), or none. The "
          "default is sqrt for the adaptive optimisers, that is all but sgd, sgdw and lars.")},
    {"/lr/factor", JOB_OPTION_NUMBER, AT(lr.factor), DEFAULT("1"), RANGE(0, 1000), ABOVE,
     HELP("Factor for the scaled learning rate.")},
    {"/lr/head_factor", JOB_OPTION_NUMBER, AT(lr.head_factor), DEFAULT("1"), RANGE(0, 1000), ABOVE,
     HELP("Factor of the learning rate of the classifier, in addition to all others: for a new classifier behind trained weights.")},
    {"/lr/start", JOB_OPTION_NUMBER, OR_NULL, AT(lr.start), FLAG(lr.has_start), DEFAULT("null"), RANGE(0, 1000),
     HELP("Learning rate of the first step, from which warm-up rises to the peak; null: lr.base, or the peak if that is lower.")},
    {"/lr/warmup_epochs", JOB_OPTION_NUMBER, AT(lr.warmup_epochs), DEFAULT("5"), RANGE(0, 10000), UNIT("epochs"),
     HELP("Length of the linear warm-up; 0: none.")},
    {"/lr/decay", CHOICE("poly", "cosine", "step", "exponential", "plateau", "none"), AT(lr.decay), DEFAULT("\"poly\""),
     HELP("How the learning rate falls after warm-up. plateau: by lr.gamma when the evaluations (eval.every_epochs) have stopped improving.")},
    {"/lr/power", JOB_OPTION_NUMBER, AT(lr.power), DEFAULT("1"), RANGE(0, 10), ABOVE,
     HELP("Exponent of the poly decay; 1 is linear.")},
    {"/lr/end", JOB_OPTION_NUMBER, AT(lr.end), DEFAULT("0"), RANGE(0, 1000),
     HELP("Final learning rate of the poly and cosine decays, and the lowest of the plateau decay.")},
    {"/lr/milestones", JOB_OPTION_NUMBERS, AT(lr.milestones), FLAG(lr.milestone_count), DEFAULT("[30, 60, 80]"),
     RANGE(0, 10000), ABOVE, .most = JOB_MILESTONES_MAX, UNIT("epochs"),
     HELP("Epochs, in ascending order, at which the step decay multiplies the learning rate by lr.gamma.")},
    {"/lr/gamma", JOB_OPTION_NUMBER, AT(lr.gamma), DEFAULT("0.1"), RANGE(0, 1), ABOVE,
     HELP("Factor of the step decay at each milestone, of the exponential decay per lr.decay_epochs, and of the plateau decay.")},
    {"/lr/decay_epochs", JOB_OPTION_NUMBER, AT(lr.decay_epochs), DEFAULT("30"), RANGE(0, 10000), ABOVE, UNIT("epochs"),
     HELP("Time in which the exponential decay multiplies the learning rate by lr.gamma, counted from the end of warm-up.")},
    {"/lr/staircase", JOB_OPTION_BOOLEAN, AT(lr.staircase), DEFAULT("false"),
     HELP("Exponential decay in jumps, one after each lr.decay_epochs; false: a little in every step.")},
    {"/lr/patience", JOB_OPTION_INTEGER, AT(lr.patience), DEFAULT("10"), RANGE(0, 10000), UNIT("evaluations"),
     HELP("Plateau decay: evaluations without an improvement of eval.monitor that are tolerated; the next one multiplies the rate by "
          "lr.gamma, as with PyTorch's ReduceLROnPlateau. Evaluations during warm-up do not count.")},
    {"/lr/threshold", JOB_OPTION_NUMBER, AT(lr.threshold), DEFAULT("1e-4"), RANGE(0, 1), BELOW, UNIT("fraction"),
     HELP("Plateau decay: a value counts as an improvement if it is better than the best one by more than this fraction of it.")},
    {"/lr/cooldown", JOB_OPTION_INTEGER, AT(lr.cooldown), DEFAULT("0"), RANGE(0, 10000), UNIT("evaluations"),
     HELP("Plateau decay: evaluations after a reduction that do not count for the next one.")},

    {"/optimizer/name", CHOICE("sgd", "sgdw", "lars", "adam", "adamw", "rmsprop", "adagrad", "adadelta"), AT(optimizer.name), DEFAULT("\"sgd\""),
     HELP("sgd: stochastic gradient descent with momentum; sgdw: sgd with decoupled weight decay, as DecoupledSGDW of MosaicML's Composer: "
          "v = momentum v + g; w = (1 - weight_decay lr / peak) w - lr v, where lr is the rate of the step and peak the peak_lr of the "
          "plan; lars: LARS, for very large batches; the adaptive optimisers have PyTorch's definitions and defaults.")},
    {"/optimizer/momentum", JOB_OPTION_NUMBER, AT(optimizer.momentum), DEFAULT("0.9"), RANGE(0, 1), BELOW,
     HELP("Momentum of sgd, sgdw, lars and rmsprop; 0: none (the default of rmsprop).")},
    {"/optimizer/nesterov", JOB_OPTION_BOOLEAN, AT(optimizer.nesterov), DEFAULT("false"),
     HELP("Use Nesterov momentum (sgd, sgdw and lars): the step is g + momentum v, for sgd and lars including the weight decay in g.")},
    {"/optimizer/weight_decay", JOB_OPTION_NUMBER, AT(optimizer.weight_decay), DEFAULT("5e-5"), RANGE(0, 1),
     HELP("Weight decay: weight_decay x weight is added to the gradient; adamw shrinks the weight by learning rate x weight_decay "
          "instead, sgdw by weight_decay x the fraction of the peak that the learning rate has. The default is 5e-5 for sgd and lars, 5e-4 "
          "for sgdw, 0.01 for adamw, 0 for the others.")},
    {"/optimizer/decay_bn", JOB_OPTION_BOOLEAN, AT(optimizer.decay_bn), DEFAULT("false"),
     HELP("Also decay gamma and beta of batch norm. The bias of the classifier is always decayed, except with lars, which treats it like "
          "gamma and beta (as does the MLPerf reference).")},
    {"/optimizer/lars_eta", JOB_OPTION_NUMBER, AT(optimizer.lars_eta), DEFAULT("0.001"), RANGE(0, 1), ABOVE,
     HELP("Trust coefficient of LARS.")},
    {"/optimizer/momentum_correction", JOB_OPTION_BOOLEAN, AT(optimizer.momentum_correction), DEFAULT("false"),
     HELP("Scale the momentum when the learning rate changes (Goyal et al. 2017, section 3). Only affects lars, whose momentum includes "
          "the learning rate; that of sgd does not and needs no correction.")},
    {"/optimizer/beta1", JOB_OPTION_NUMBER, AT(optimizer.beta1), DEFAULT("0.9"), RANGE(0, 1), BELOW,
     HELP("Decay of the mean of the gradients per step (adam and adamw).")},
    {"/optimizer/beta2", JOB_OPTION_NUMBER, AT(optimizer.beta2), DEFAULT("0.999"), RANGE(0, 1), BELOW,
     HELP("Decay of the mean of the squared gradients per step (adam and adamw).")},
    {"/optimizer/eps", JOB_OPTION_NUMBER, AT(optimizer.eps), DEFAULT("1e-8"), RANGE(0, 1), ABOVE,
     HELP("Constant of the adaptive optimisers that prevents division by 0. The default is 1e-8 for adam, adamw and rmsprop, 1e-10 for "
          "adagrad, 1e-6 for adadelta.")},
    {"/optimizer/alpha", JOB_OPTION_NUMBER, AT(optimizer.alpha), DEFAULT("0.99"), RANGE(0, 1), BELOW,
     HELP("Decay of the mean of the squared gradients per step (rmsprop).")},
    {"/optimizer/centered", JOB_OPTION_BOOLEAN, AT(optimizer.centered), DEFAULT("false"),
     HELP("Divide by the standard deviation of the gradients instead of their root mean square (rmsprop).")},
    {"/optimizer/lr_decay", JOB_OPTION_NUMBER, AT(optimizer.lr_decay), DEFAULT("0"), RANGE(0, 1),
     HELP("Divide the learning rate of step t by 1 + (t - 1) lr_decay (adagrad).")},
    {"/optimizer/rho", JOB_OPTION_NUMBER, AT(optimizer.rho), DEFAULT("0.9"), RANGE(0, 1), BELOW,
     HELP("Decay of the means of squares per step (adadelta).")},
    {"/optimizer/clip_norm", JOB_OPTION_NUMBER, AT(optimizer.clip_norm), DEFAULT("0"), RANGE(0, 1e12),
     HELP("Largest L2 norm of the gradients of all weights together. If that of the mean over the global batch, without weight decay, is "
          "larger, all gradients are multiplied by clip_norm / (norm + 1e-6), as by PyTorch's clip_grad_norm_. The metric grad_norm is "
          "the norm before clipping. 0: no clipping.")},
    {"/optimizer/label_smoothing", JOB_OPTION_NUMBER, AT(optimizer.label_smoothing), DEFAULT("0"), RANGE(0, 1), BELOW,
     HELP("Fraction of each label that is spread evenly over all classes.")},

    {"/eval/every_epochs", JOB_OPTION_NUMBER, AT(eval.every_epochs), DEFAULT("0"), RANGE(0, 10000), UNIT("epochs"),
     HELP("Interval between evaluations, besides the one at the end; 0: only at the end.")},
    {"/eval/batch", JOB_OPTION_INTEGER, AT(eval.batch), DEFAULT("200"), RANGE(1, 65536), UNIT("images"),
     HELP("Images per evaluation batch.")},
    {"/eval/monitor", CHOICE("top1", "loss"), AT(eval.monitor), DEFAULT("\"top1\""),
     HELP("What makes an evaluation better than another, for checkpoint.keep_best, eval.patience and lr.decay plateau: a higher top-1 "
          "accuracy, or a lower loss. With averaged weights (ema), theirs.")},
    {"/eval/patience", JOB_OPTION_INTEGER, AT(eval.patience), DEFAULT("0"), RANGE(0, 10000), UNIT("evaluations"),
     HELP("End the run early, as succeeded, after this many evaluations in succession without an improvement of eval.monitor; 0: never. "
          "Needs eval.every_epochs.")},
    {"/eval/min_delta", JOB_OPTION_NUMBER, AT(eval.min_delta), DEFAULT("0"), RANGE(0, 1000),
     HELP("For eval.patience: a value is an improvement if it is better by more than this, for top1 as a fraction: 0.001 is 0.1 %.")},
    {"/eval/target_top1", JOB_OPTION_NUMBER, OR_NULL, AT(eval.target_top1), FLAG(eval.has_target_top1), DEFAULT("null"),
     RANGE(0, 1), ABOVE, UNIT("fraction"),
     HELP("Top-1 accuracy to reach, as a fraction: 0.759 is 75.9 %.")},
    {"/eval/stop_at_target", JOB_OPTION_BOOLEAN, AT(eval.stop_at_target), DEFAULT("false"),
     HELP("End the run at the first evaluation that reaches eval.target_top1.")},
    {"/eval/predictions", JOB_OPTION_BOOLEAN, APART, AT(eval.predictions), DEFAULT("false"),
     HELP("Write predictions.csv with file, label, top-1 and its probability for each evaluation image.")},
    {"/eval/image_size", JOB_OPTION_INTEGER, OR_NULL, AT(eval.image_size), FLAG(eval.has_image_size), DEFAULT("null"), RANGE(28, 1024), UNIT("pixels"),
     HELP("Width and height of evaluation images; null: the (last) model.image_size. Networks trained with random crops, which enlarge "
          "objects, are more accurate at a somewhat larger size (Touvron et al. 2019). Not for cnn.")},
    {"/eval/resize", JOB_OPTION_INTEGER, OR_NULL, AT(eval.resize), FLAG(eval.has_resize), DEFAULT("null"), RANGE(28, 4096), UNIT("pixels"),
     HELP("Shorter side to which evaluation images are resized before their centre is cut to eval.image_size; null: 256/224 of that size, "
          "as usual. Networks trained at smaller sizes are often tested with a larger part of the image, as 232 for 224. Not for data.preprocess "
          "whole, which cuts nothing.")},
    {"/eval/flip", JOB_OPTION_BOOLEAN, AT(eval.flip), DEFAULT("false"),
     HELP("Average the outputs for each image and its mirror image. Evaluations then take twice as long and are not comparable with "
          "published top-1 accuracies.")},

    {"/ema/decay", JOB_OPTION_NUMBER, AT(ema.decay), DEFAULT("0"), RANGE(0, 1), BELOW,
     HELP("Keep a moving average of the weights and the batch norm statistics with this decay per step; 0: none, or ema.half_life. Evaluations, "
          "eval.target_top1 and predictions.csv then use the averaged weights, and the raw weights are evaluated as well; a checkpoint "
          "contains both (ema.safetensors).")},
    {"/ema/half_life", JOB_OPTION_NUMBER, AT(ema.half_life), DEFAULT("0"), RANGE(0, 1e9), UNIT("steps"),
     HELP("Steps after which half of the average consists of newer weights: another way to state ema.decay, which is then 0.5^(1 / "
          "half_life) and must not be set. 0: ema.decay.")},
    {"/ema/every", JOB_OPTION_INTEGER, AT(ema.every), DEFAULT("1"), RANGE(1, 1e6), UNIT("steps"),
     HELP("Interval between updates of the average: after each step whose number, from 1, is a multiple of it. The decay of an update is that of so "
          "many steps, decay^every.")},
    {"/ema/from_epoch", JOB_OPTION_NUMBER, AT(ema.from_epoch), DEFAULT("0"), RANGE(0, 10000), UNIT("epochs"),
     HELP("Epoch in which the average starts, with the weights after its first step.")},
    {"/ema/warmup", JOB_OPTION_BOOLEAN, AT(ema.warmup), DEFAULT("true"),
     HELP("Limit the decay of the n-th update of the average to (1 + n) / (10 + n), so that the first weights are soon forgotten (as in "
          "TensorFlow).")},

    {"/checkpoint/every_epochs", JOB_OPTION_NUMBER, AT(checkpoint.every_epochs), DEFAULT("1"), RANGE(0, 10000), UNIT("epochs"),
     HELP("Interval between checkpoints in epochs; 0: none by epochs.")},
    {"/checkpoint/every_steps", JOB_OPTION_INTEGER, AT(checkpoint.every_steps), DEFAULT("0"), RANGE(0, 1e9), UNIT("steps"),
     HELP("Interval between checkpoints in steps; 0: none by steps.")},
    {"/checkpoint/keep", JOB_OPTION_INTEGER, APART, AT(checkpoint.keep), DEFAULT("\"auto\""), RANGE(1, 10000), WORDS("auto"),
     HELP("Number of checkpoints to keep, the newest ones. auto: two during the training, and only the last one, which has the final weights, "
          "after it has succeeded.")},
    {"/checkpoint/keep_best", JOB_OPTION_INTEGER, APART, AT(checkpoint.keep_best), DEFAULT("0"), RANGE(0, JOB_KEEP_BEST_MAX),
     HELP("Number of checkpoints to keep besides, those of the best evaluations by eval.monitor; each is written at its evaluation. If "
          "it is above 0, model.init of a run directory and trainctl export --weights take the best one instead of the newest.")},
    {"/checkpoint/disable", JOB_OPTION_BOOLEAN, AT(checkpoint.disable), DEFAULT("false"),
     HELP("Write no checkpoints; on many nodes they reduce the throughput.")},

    {"/comm/fusion_bytes", JOB_OPTION_INTEGER, AT(comm.fusion_bytes), DEFAULT("8388608"), RANGE(1024, 1073741824), UNIT("bytes"),
     HELP("Size of the buckets in which gradients are summed between machines. No effect within one machine, which uses buckets "
          "that stay in the cache.")},
    {"/comm/overlap", JOB_OPTION_BOOLEAN, AT(comm.overlap), DEFAULT("true"),
     HELP("Send gradients between machines during the backward pass, unless the first steps show that sending them after it is faster; "
          "the results are the same. No effect within one machine, which sums them after it.")},
    {"/comm/core", JOB_OPTION_INTEGER, APART, AT(comm.core), DEFAULT("\"auto\""), RANGE(0, 1023), WORDS("auto", "none"),
     HELP("CPU that each worker gives up to a thread that sums gradients between machines during the backward pass, if the first steps "
          "show that this is faster. auto: one of its cores or hardware threads that threads_per_worker leaves free; without one, no "
          "thread. none: no thread. A number: that CPU of every machine, and of several workers on it the next ones for the others, also "
          "if workers are bound to other CPUs. The results are the same. No effect within one machine, and without comm.overlap.")},
    {"/comm/dtype", CHOICE("fp32", "bf16"), AT(comm.dtype), DEFAULT("\"fp32\""),
     HELP("Number format in which gradients are sent. bf16 halves the bytes: the gradients of each worker (between machines, the sum of "
          "a machine's workers) are rounded to 8 significant bits and summed in fp32, and the sum is rounded again. Each rounding adds an error of at most 0.4 %, in either direction, "
          "whatever the number of workers.")},
    {"/profile/steps", JOB_OPTION_STEPS, OR_NULL, APART, AT(profile.first_step), FLAG(profile.has_steps), DEFAULT("null"),
     RANGE(1, 1e9), UNIT("steps"),
     HELP("Trace the steps from first to last, both included: [first, last].")},
    {"/log/every_seconds", JOB_OPTION_NUMBER, APART, AT(log.every_seconds), DEFAULT("5"), RANGE(0, 86400), UNIT("seconds"),
     HELP("Interval between progress lines in the log in seconds, besides the one at the last step; 0: none by time.")},
    {"/log/every_steps", JOB_OPTION_INTEGER, APART, AT(log.every_steps), DEFAULT("0"), RANGE(0, 1e9), UNIT("steps"),
     HELP("Interval between progress lines in the log in steps; 0: none by steps. events.jsonl contains every step in any case.")},
    {"/tensorboard/every_steps", JOB_OPTION_INTEGER, APART, AT(tensorboard.every_steps), DEFAULT("1"), RANGE(1, 1e9), UNIT("steps"),
     HELP("Interval between summaries in the TensorBoard file; evaluations are always included.")},
    {"/restart/max", JOB_OPTION_INTEGER, APART, AT(restart.max), DEFAULT("3"), RANGE(0, 1000), UNIT("restarts"),
     HELP("Number of times a job is restarted from its newest checkpoint after a failure that its document did not cause.")},
    {"/restart/on_fewer_nodes", CHOICE("rescale", "keep_batch"), APART, AT(restart.on_fewer_nodes), DEFAULT("\"rescale\""),
     HELP("If fewer nodes remain: rescale uses a smaller global batch and learning rate, keep_batch keeps the batch by accumulation.")},
    {"/restart/grow", JOB_OPTION_BOOLEAN, APART, AT(restart.grow), DEFAULT("false"),
     HELP("Whether a job that continues on fewer nodes goes back to cluster.nodes: when more of cluster.hosts answer and are free, it writes a "
          "checkpoint and continues from it on more nodes, which does not count as a restart. With nodes as at first, batch and learning rate "
          "are those of the document again. Not with launcher slurm, which starts a job on all of its nodes only.")},
    {"/restart/grow_seconds", JOB_OPTION_INTEGER, APART, AT(restart.grow_seconds), DEFAULT("600"), RANGE(0, 864000), UNIT("seconds"),
     HELP("How long an attempt on fewer nodes runs at least before restart.grow ends it, so that a host that comes and goes costs little time. A job that is "
          "predicted to end within this time does not grow.")},
    {"/after", JOB_OPTION_NUMBERS, APART, AT(after), FLAG(after_count), DEFAULT("[]"), RANGE(1, 1e12), .whole = true, .most = JOB_AFTER_MAX,
     HELP("Ids of earlier jobs: this one starts once all of them have succeeded, and is cancelled when one of them fails, is cancelled or cannot start itself.")},
    {"/priority", JOB_OPTION_INTEGER, APART, AT(priority), DEFAULT("0"), RANGE(-1000, 1000),
     HELP("Jobs with a higher priority start first; each point is worth an hour of waiting (priority_seconds of traind.conf).")},
    {"/notify", JOB_OPTION_NOTIFY, APART, AT(notify), DEFAULT("[]"), .most = NOTICE_RULES_MAX,
     HELP("Notifications about the job: \"to\" is a URL that gets a POST request, or \"mailto:NAME@HOST\"; \"on\" lists succeeded, failed, cancelled (these three by default), attempt_failed, target_met, straggler, stalled, node_drained and sweep_done; \"format\" is json, or text, which chat services take. Everyone who may read the job sees its targets.")},
};

/* Names of our keys in other programs */
static const struct {
    const char *word, *pointer;
} aliases[] = {
    {"learning_rate", "/lr/base"},       {"base_lr", "/lr/base"},
    {"peak_lr", "/lr/base"},             {"batch", "/batch_per_worker"},
    {"batch_size", "/batch_per_worker"}, {"train_batch_size", "/batch_per_worker"},
    {"global_batch_size", "/global_batch"}, {"total_batch_size", "/global_batch"},
    {"bs", "/batch_per_worker"},         {"train_steps", "/steps"},
    {"max_train_steps", "/steps"},       {"train_epochs", "/epochs"},
    {"num_epochs", "/epochs"},           {"workers", "/cluster/workers_per_node"},
    {"ranks", "/cluster/workers_per_node"},        {"np", "/cluster/workers_per_node"},
    {"threads", "/cluster/threads_per_worker"},    {"num_classes", "/model/classes"},
    {"wd", "/optimizer/weight_decay"},   {"data_dir", "/data/train"},
    {"dataset", "/data/train"},          {"validation", "/data/eval"},
    {"eval_batch_size", "/eval/batch"},  {"schedule", "/lr/decay"},
    {"width_multiplier", "/model/width"}, {"drop_rate", "/model/dropout"},
    {"pretrained", "/model/init"},       {"weights", "/model/init"},
    {"dtype", "/precision"},             {"resolution", "/model/image_size"},
    {"epsilon", "/optimizer/eps"},       {"decay_rate", "/lr/gamma"},
    {"warmup", "/lr/warmup_epochs"},
    {"disable_checkpoints", "/checkpoint/disable"},
    {"profile_steps", "/profile/steps"},
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct job_option *job_option_at(size_t i)
{
    return i < COUNT(options) ? &options[i] : NULL;
}

const struct job_option *job_option_find(const char *pointer)
{
    for (size_t i = 0; i < COUNT(options); i++)
        if (strcmp(options[i].pointer, pointer) == 0)
            return &options[i];
    return NULL;
}

bool job_option_is_group(const char *pointer)
{
    size_t length = strlen(pointer);

    for (size_t i = 0; i < COUNT(options); i++)
        if (strncmp(options[i].pointer, pointer, length) == 0 && options[i].pointer[length] == '/')
            return true;
    return false;
}

bool job_option_is_apart(const char *pointer)
{
    size_t length = strlen(pointer);
    bool apart = false;

    for (size_t i = 0; i < COUNT(options); i++) {
        const char *row = options[i].pointer;
        if (strncmp(row, pointer, length) != 0 || (row[length] && row[length] != '/'))
            continue;
        if (!options[i].apart)
            return false;
        apart = true;
    }
    return apart;
}

const char *job_option_choice(const struct job_option *option, size_t i)
{
    const struct arch *arch = option->type == JOB_OPTION_ARCH ? arch_at(i) : NULL;

    if (option->choices)
        return option->choices[i];
    return arch ? arch->name : NULL;
}

json_t *job_option_default(const struct job_option *option)
{
    return must_alloc(json_loads(option->fallback, JSON_DECODE_ANY, NULL));
}

static const char *job_options_last_part(const char *pointer)
{
    return strrchr(pointer, '/') + 1;
}

static size_t job_options_key_parts(const char *pointer)
{
    size_t parts = 0;

    for (; *pointer; pointer++)
        parts += *pointer == '/';
    return parts;
}

/* Copies the pointer without its last part, truncated if too long to be similar to any group. */
static void job_options_copy_group(const char *pointer, char group[SUGGEST_WORD_MAX + 2])
{
    snprintf(group, SUGGEST_WORD_MAX + 2, "%.*s", (int)(job_options_last_part(pointer) - pointer),
             pointer);
}

/* 0: same group, 1: one letter differs, 2: another group, 3: also of another depth. */
static size_t job_options_group_distance(const char *unknown, const char *known)
{
    char a[SUGGEST_WORD_MAX + 2], b[SUGGEST_WORD_MAX + 2];

    job_options_copy_group(unknown, a);
    job_options_copy_group(known, b);
    size_t edits = text_distance(a, b);
    return (edits < 2 ? edits : 2) +
           (job_options_key_parts(unknown) != job_options_key_parts(known));
}

/* Distance of a known key from an unknown one; smaller is more similar. The same last part in
 * another group counts like one wrong letter in the right group. */
static size_t job_options_key_distance(const char *unknown, const char *known)
{
    const char *a = job_options_last_part(unknown), *b = job_options_last_part(known);
    size_t edits = text_distance(a, b), length = strlen(a);

    if (length >= 3 && edits > 1 && (strstr(b, a) || strstr(a, b)))
        edits = 2;
    if (edits > 1 + length / 4)
        return SUGGEST_WORD_MAX;
    return 2 * edits + job_options_group_distance(unknown, known);
}

const char *job_option_nearest(const char *unknown)
{
    size_t best = SUGGEST_WORD_MAX, distance;
    const char *nearest = NULL;

    for (size_t i = 0; i < COUNT(options); i++)
        if ((distance = job_options_key_distance(unknown, options[i].pointer)) < best) {
            best = distance;
            nearest = options[i].pointer;
        }
    for (size_t i = 0; i < COUNT(aliases); i++)
        if (text_distance(job_options_last_part(unknown), aliases[i].word) == 0 && best > 0)
            return aliases[i].pointer;
    return nearest;
}

/* Writes "from 1 to 100000", "above 0, at most 1000" or "from 0 up to but not including 1". */
static void job_options_describe_range(const struct job_option *o, char *text, size_t bytes)
{
    if (o->above_min && o->below_max)
        snprintf(text, bytes, "above %.16g and below %.16g", o->min, o->max);
    else if (o->above_min)
        snprintf(text, bytes, "above %.16g, at most %.16g", o->min, o->max);
    else if (o->below_max)
        snprintf(text, bytes, "from %.16g, below %.16g", o->min, o->max);
    else
        snprintf(text, bytes, "from %.16g to %.16g", o->min, o->max);
}

static void job_options_describe_choices(const struct job_option *o, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "one of");
    const char *choice;

    for (size_t i = 0; (choice = job_option_choice(o, i)) && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s \"%s\"", i ? "," : "", choice);
}

static void job_options_add_words(const struct job_option *o, char *text, size_t bytes)
{
    const char *word;

    for (size_t i = 0, used = 0; (word = job_option_choice(o, i)); i++)
        used += (size_t)snprintf(text + used, bytes - used, ", or \"%s\"", word);
}

static const char *job_options_made_of(const struct job_option *o)
{
    const char *letters = job_text_letters(o->text);
    return letters                    ? letters
           : o->text == JOB_TEXT_PATH ? "bytes of printable characters"
                                      : "printable characters";
}

void job_option_expects(const struct job_option *o, char text[JOB_OPTION_EXPECTS_BYTES])
{
    size_t bytes = JOB_OPTION_EXPECTS_BYTES, used;
    char range[128];

    job_options_describe_range(o, range, sizeof range);
    switch (o->type) {
    case JOB_OPTION_BOOLEAN:
        snprintf(text, bytes, "true or false");
        break;
    case JOB_OPTION_INTEGER:
        used = (size_t)snprintf(text, bytes, "an integer %s", range);
        job_options_add_words(o, text + used, bytes - used);
        break;
    case JOB_OPTION_NUMBER:
        snprintf(text, bytes, "a number %s", range);
        break;
    case JOB_OPTION_STRING:
        snprintf(text, bytes, "a string of %.0f to %.0f %s", o->min, o->max,
                 job_options_made_of(o));
        break;
    case JOB_OPTION_CHOICE:
    case JOB_OPTION_ARCH:
        job_options_describe_choices(o, text, bytes);
        break;
    case JOB_OPTION_STRINGS:
        used = (size_t)snprintf(text, bytes, "a list of at most %zu strings of %.0f to %.0f %s",
                                o->most, o->min, o->max, job_options_made_of(o));
        job_options_add_words(o, text + used, bytes - used);
        break;
    case JOB_OPTION_NUMBERS:
        used = (size_t)snprintf(text, bytes, "a list of at most %zu %s %s", o->most,
                                o->whole ? "integers" : "numbers", range);
        job_options_add_words(o, text + used, bytes - used);
        break;
    case JOB_OPTION_MAP:
        snprintf(text, bytes,
                 "an object of at most %zu names of 1 to %zu %s, each with a string of %.0f to "
                 "%.0f %s",
                 o->most, o->name_max, job_text_letters(o->names), o->min, o->max,
                 job_options_made_of(o));
        break;
    case JOB_OPTION_SIZES:
        job_sizes_expects(o->min, o->max, text, bytes);
        break;
    case JOB_OPTION_STEPS:
        snprintf(text, bytes, "a list [first, last] of two integers %s, first <= last", range);
        break;
    case JOB_OPTION_NOTIFY:
        notice_rules_expect(text, bytes);
        break;
    }
    if (o->nullable)
        strncat(text, ", or null", bytes - strlen(text) - 1);
}
