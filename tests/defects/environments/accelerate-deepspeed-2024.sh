export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
export HF_HUB_ENABLE_HF_TRANSFER=1
deepspeed --num_nodes=1 --num_gpus=8 train.py \
    --model_name teknium/OpenHermes-2.5-Mistral-7B \
    --batch_size 1 \
    --max_length 4096
